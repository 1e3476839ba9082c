/* Shortest paths between all pairs: Floyd and Warshall on a dense matrix. */
#include <stdint.h>
#include <string.h>

static void relax(int64_t n, double to_pivot, const double *restrict pivot, double *restrict row)
{
    for (int64_t j = 0; j < n; j++) {
        const double through = to_pivot + pivot[j];
        row[j] = through < row[j] ? through : row[j];
    }
}

void floyd(int64_t n, const double *restrict start, double *restrict dist)
{
    memcpy(dist, start, sizeof(double) * (size_t)(n * n));
#pragma omp parallel
    for (int64_t k = 0; k < n; k++) {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            if (i != k) /* row k does not change in step k */
                relax(n, dist[i * n + k], dist + k * n, dist + i * n);
    }
}
