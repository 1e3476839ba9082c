/* The time that a bead takes down a wire of n + 1 pieces, and its gradient by the heights between them. Keeps the speeds,
 * and of each piece the slope of its time by the fall along it and by the speeds at its ends. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

double brachistochrone(int64_t n, const double *restrict y, double width, double *restrict y_adj)
{
    double *kept = malloc(sizeof(double) * (size_t)(4 * n + 8));
    double *height = kept, *speed = height + n + 2, *by_fall = speed + n + 2, *by_speed = by_fall + n + 1;
    const double step = width / (double)(n + 1), square = step * step;
    double total = 0.0;
    height[0] = 1.0;
    for (int64_t i = 0; i < n; i++)
        height[i + 1] = y[i];
    height[n + 1] = 0.0;
    for (int64_t i = 0; i < n + 2; i++)
        speed[i] = sqrt(19.6 * (1.0 - height[i]));
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n + 1; i++) {
        const double fall = height[i + 1] - height[i];
        const double length = sqrt(square + fall * fall), inverse = 1.0 / (speed[i] + speed[i + 1]);
        const double time = 2.0 * length * inverse;
        total += time;
        by_fall[i] = 2.0 * inverse * fall / length;
        by_speed[i] = -time * inverse;
    }
    for (int64_t i = 0; i < n; i++) {
        const double speed_adj = by_speed[i] + by_speed[i + 1];
        y_adj[i] = by_fall[i] - by_fall[i + 1] - 9.8 * speed_adj / speed[i + 1];
    }
    free(kept);
    return total;
}
