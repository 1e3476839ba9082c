/* Sum over the points of the squared distance to the nearest centroid, and its gradient by the centroids. */
#include <float.h>
#include <stdint.h>
#include <string.h>

double kmeans_adjoint(int64_t n, int64_t k, int64_t d, const double *restrict points,
                      const double *restrict centroids, double *restrict gradient)
{
    double cost = 0.0;
    memset(gradient, 0, sizeof(double) * (size_t)(k * d));
#pragma omp parallel for schedule(static) reduction(+ : cost, gradient[:k * d])
    for (int64_t i = 0; i < n; i++) {
        const double *restrict point = points + i * d;
        double nearest = DBL_MAX;
        int64_t winner = 0;
        for (int64_t c = 0; c < k; c++) {
            const double *restrict centroid = centroids + c * d;
            double distance = 0.0;
#pragma omp simd reduction(+ : distance)
            for (int64_t j = 0; j < d; j++) {
                const double diff = point[j] - centroid[j];
                distance += diff * diff;
            }
            if (distance < nearest) {
                nearest = distance;
                winner = c;
            }
        }
        for (int64_t j = 0; j < d; j++)
            gradient[winner * d + j] += 2.0 * (centroids[winner * d + j] - point[j]);
        cost += nearest;
    }
    return cost;
}
