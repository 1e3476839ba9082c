/* The sum of squares of the final positions of n bodies, and its gradient by first positions and velocities.
 * Keeps the positions of each step; the pairs are computed again. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

double nbody_adjoint(int64_t n, int64_t steps, double dt, double softening, const double *restrict mass,
                     const double *restrict position, const double *restrict velocity, double *restrict pos_adj,
                     double *restrict vel_adj)
{
    const double soft = softening * softening;
    const size_t bytes = sizeof(double) * (size_t)(3 * n);
    double *trace = malloc(bytes * (size_t)(steps + 1));
    double *vel = malloc(bytes);
    double *push = malloc(bytes); /* the adjoint of the accelerations */
    double total = 0.0;
    memcpy(trace, position, bytes);
    memcpy(vel, velocity, bytes);
    memset(vel_adj, 0, bytes);
#pragma omp parallel
    {
        for (int64_t t = 0; t < steps; t++) {
            const double *x = trace + 3 * n * t, *y = x + n, *z = y + n;
            double *next = trace + 3 * n * (t + 1);
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
                next[i] = xi + dt * vel[i];
                next[n + i] = yi + dt * vel[n + i];
                next[2 * n + i] = zi + dt * vel[2 * n + i];
            }
        }
        const double *last = trace + 3 * n * steps;
#pragma omp for simd schedule(static) reduction(+ : total)
        for (int64_t i = 0; i < 3 * n; i++) {
            total += last[i] * last[i];
            pos_adj[i] = 2.0 * last[i];
        }
        for (int64_t t = steps - 1; t >= 0; t--) {
            const double *x = trace + 3 * n * t, *y = x + n, *z = y + n;
            const double *px = push, *py = px + n, *pz = py + n;
#pragma omp for simd schedule(static)
            for (int64_t i = 0; i < 3 * n; i++) {
                vel_adj[i] += dt * pos_adj[i];
                push[i] = dt * vel_adj[i];
            }
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++) {
                const double xi = x[i], yi = y[i], zi = z[i], mi = mass[i];
                const double pxi = px[i], pyi = py[i], pzi = pz[i];
                double bx = 0.0, by = 0.0, bz = 0.0;
#pragma omp simd reduction(+ : bx, by, bz)
                for (int64_t j = 0; j < n; j++) {
                    const double dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
                    const double square = dx * dx + dy * dy + dz * dz + soft;
                    const double inverse = 1.0 / square, cube = inverse * sqrt(inverse);
                    const double ux = mass[j] * pxi - mi * px[j];
                    const double uy = mass[j] * pyi - mi * py[j];
                    const double uz = mass[j] * pzi - mi * pz[j];
                    const double along = 3.0 * inverse * (ux * dx + uy * dy + uz * dz);
                    bx += cube * (along * dx - ux);
                    by += cube * (along * dy - uy);
                    bz += cube * (along * dz - uz);
                }
                pos_adj[i] += bx;
                pos_adj[n + i] += by;
                pos_adj[2 * n + i] += bz;
            }
        }
    }
    free(push);
    free(vel);
    free(trace);
    return total;
}
