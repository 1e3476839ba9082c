/* All pairs gravity with softening, symplectic Euler. Positions and velocities are [3][n]. */
#include <math.h>
#include <stdint.h>
#include <string.h>

void nbody(int64_t n, int64_t steps, double dt, double softening, const double *restrict mass,
           const double *restrict position, const double *restrict velocity, double *restrict pos,
           double *restrict vel)
{
    const double soft = softening * softening;
    memcpy(pos, position, sizeof(double) * (size_t)(3 * n));
    memcpy(vel, velocity, sizeof(double) * (size_t)(3 * n));
    const double *x = pos, *y = pos + n, *z = pos + 2 * n;
#pragma omp parallel
    for (int64_t t = 0; t < steps; t++) {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++) {
            const double xi = x[i], yi = y[i], zi = z[i];
            double ax = 0.0, ay = 0.0, az = 0.0;
#pragma omp simd reduction(+ : ax, ay, az)
            for (int64_t j = 0; j < n; j++) {
                const double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
                const double square = dx * dx + dy * dy + dz * dz + soft;
                const double pull = mass[j] / (square * sqrt(square));
                ax += pull * dx;
                ay += pull * dy;
                az += pull * dz;
            }
            vel[i] += dt * ax;
            vel[n + i] += dt * ay;
            vel[2 * n + i] += dt * az;
        }
#pragma omp for simd schedule(static)
        for (int64_t i = 0; i < 3 * n; i++)
            pos[i] += dt * vel[i];
    }
}
