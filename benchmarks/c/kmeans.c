/* Sum over the points of the squared distance to the nearest centroid. */
#include <float.h>
#include <stdint.h>

double kmeans(int64_t n, int64_t k, int64_t d, const double *restrict points,
              const double *restrict centroids)
{
    double cost = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : cost)
    for (int64_t i = 0; i < n; i++) {
        const double *restrict point = points + i * d;
        double nearest = DBL_MAX;
        for (int64_t c = 0; c < k; c++) {
            const double *restrict centroid = centroids + c * d;
            double distance = 0.0;
#pragma omp simd reduction(+ : distance)
            for (int64_t j = 0; j < d; j++) {
                const double diff = point[j] - centroid[j];
                distance += diff * diff;
            }
            nearest = distance < nearest ? distance : nearest;
        }
        cost += nearest;
    }
    return cost;
}
