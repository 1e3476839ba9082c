/* J_nu(z) by its power series; each element stops when its own term is small. */
#include <math.h>
#include <stdint.h>

static double bessel_j(int64_t nu, double z)
{
    const double half = 0.5 * z, square = half * half;
    double term = 1.0;
    for (int64_t i = 1; i <= nu; i++)
        term *= half / (double)i;
    double sum = term;
    int64_t k = 0;
    while (fabs(term) > 1e-12) {
        k++;
        term *= -square / (double)(k * (k + nu));
        sum += term;
    }
    return sum;
}

void bessel(int64_t n, int64_t nu, const double *restrict z, double *restrict out)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        out[i] = bessel_j(nu, z[i]);
}
