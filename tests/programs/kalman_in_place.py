"""A Kalman filter that keeps its state in itself, as filterpy's does: methods assign to attributes."""

import numpy as np


class KalmanFilter:
    """Linear Gaussian state; the attributes are those of the textbooks."""

    def __init__(self, F, H, Q, R, x0, P0):
        self.F, self.H, self.Q, self.R = F, H, Q, R
        self.x = x0
        self.P = P0

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z):
        innovation = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = np.linalg.solve(S, self.H @ self.P).T
        self.x = self.x + K @ innovation
        self.P = self.P - K @ S @ K.T

    def track(self, measurements):
        """The filtered places, one row a measurement."""
        path = np.empty((len(measurements), 2))
        for t, z in enumerate(measurements):
            self.predict()
            self.update(z)
            path[t] = self.x[:2]
        return path


def made(dt, process_noise, measurement_noise):
    """The filter of a body in the plane: two places, two velocities."""
    F = np.eye(4) + dt * np.eye(4, k=2)
    H = np.eye(2, 4)
    return KalmanFilter(F, H, process_noise**2 * np.eye(4), measurement_noise**2 * np.eye(2), np.zeros(4), np.eye(4))


def error(noise, measurements, places):
    q, r = noise
    return np.mean((made(0.5, q, r).track(measurements) - places) ** 2)
