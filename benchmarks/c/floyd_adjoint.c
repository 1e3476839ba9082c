/* The sum of all shortest paths, and its gradient by the matrix. Keeps for each step which entries it improved. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void relax(int64_t n, double to_pivot, const double *restrict pivot, double *restrict row,
                  uint8_t *restrict taken)
{
    for (int64_t j = 0; j < n; j++) {
        const double through = to_pivot + pivot[j];
        taken[j] = through < row[j];
        row[j] = through < row[j] ? through : row[j];
    }
}

/* Moves the adjoints of improved entries to the pivot's row; their sum is that of the way to the pivot. */
static double relax_back(int64_t n, const uint8_t *restrict taken, double *restrict row, double *restrict pivot)
{
    double to_pivot = 0.0;
#pragma omp simd reduction(+ : to_pivot)
    for (int64_t j = 0; j < n; j++) {
        const double moved = taken[j] ? row[j] : 0.0;
        row[j] = taken[j] ? 0.0 : row[j];
        pivot[j] += moved;
        to_pivot += moved;
    }
    return to_pivot;
}

double floyd_adjoint(int64_t n, const double *restrict start, double *restrict adj)
{
    double *dist = malloc(sizeof(double) * (size_t)(n * n));
    uint8_t *taken = malloc((size_t)(n * n * n));
    double total = 0.0;
    memcpy(dist, start, sizeof(double) * (size_t)(n * n));
#pragma omp parallel
    {
        for (int64_t k = 0; k < n; k++) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++)
                if (i != k) /* row k does not change in step k */
                    relax(n, dist[i * n + k], dist + k * n, dist + i * n, taken + (k * n + i) * n);
        }
#pragma omp for simd schedule(static) reduction(+ : total)
        for (int64_t i = 0; i < n * n; i++) {
            total += dist[i];
            adj[i] = 1.0;
        }
        double *mine = malloc(sizeof(double) * (size_t)n); /* what this thread adds to the pivot's row */
        for (int64_t k = n - 1; k >= 0; k--) {
            memset(mine, 0, sizeof(double) * (size_t)n);
#pragma omp for schedule(static)
            for (int64_t i = 0; i < n; i++)
                if (i != k)
                    adj[i * n + k] += relax_back(n, taken + (k * n + i) * n, adj + i * n, mine);
#pragma omp critical
            for (int64_t j = 0; j < n; j++)
                adj[k * n + j] += mine[j];
#pragma omp barrier
        }
        free(mine);
    }
    free(taken);
    free(dist);
    return total;
}
