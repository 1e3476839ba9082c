"""A Kalman filter as a class: a body with nearly constant velocity, seen by noisy measurements of its place."""

import numpy as np


class ConstantVelocity:
    """A body in the plane: two places, two velocities. Noise is given by logarithms, to be fitted."""

    def __init__(self, dt, log_noise):
        self.F = np.eye(4)
        self.F[0, 2] = self.F[1, 3] = dt
        self.H = np.eye(2, 4)
        self.G = np.array([[dt**2 / 2, 0], [0, dt**2 / 2], [dt, 0], [0, dt]])
        self.log_noise = np.asarray(log_noise)
        self.x0, self.P0 = np.zeros(4), 10.0 * np.eye(4)

    @property
    def Q(self):
        return np.exp(2 * self.log_noise[0]) * self.G @ self.G.T

    @property
    def R(self):
        return np.exp(2 * self.log_noise[1]) * np.eye(len(self.H))

    def step(self, state, z):
        """The state after a measurement, and the log likelihood of that."""
        x, P = state
        x, P = self.F @ x, self.F @ P @ self.F.T + self.Q
        innovation = z - self.H @ x
        S = self.H @ P @ self.H.T + self.R
        K = np.linalg.solve(S, self.H @ P).T
        x = x + K @ innovation
        P = (np.eye(len(x)) - K @ self.H) @ P
        _, logdet = np.linalg.slogdet(2 * np.pi * S)
        return (x, P), -0.5 * (logdet + innovation @ np.linalg.solve(S, innovation))

    def loglik(self, measurements):
        state = self.x0, self.P0
        total = 0.0
        for z in measurements:
            state, ll = self.step(state, z)
            total += ll
        return total

    def track(self, measurements):
        """The filtered places, one row a measurement."""
        path = np.empty((len(measurements), 2))
        state = self.x0, self.P0
        for t, z in enumerate(measurements):
            state, _ = self.step(state, z)
            path[t] = state[0][:2]
        return path
