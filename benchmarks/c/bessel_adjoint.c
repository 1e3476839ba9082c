/* The sum of J_nu(z), and its gradient by z: each term with its derivative by z, of which there is one. */
#include <math.h>
#include <stdint.h>

static double bessel_j(int64_t nu, double z, double *restrict slope)
{
    const double half = 0.5 * z, square = half * half;
    double term = 1.0, term_dot = 0.0;
    for (int64_t i = 1; i <= nu; i++) {
        const double inverse = 1.0 / (double)i;
        term_dot = (term_dot * half + term * 0.5) * inverse;
        term *= half * inverse;
    }
    double sum = term, sum_dot = term_dot;
    int64_t k = 0;
    while (fabs(term) > 1e-12) {
        k++;
        const double inverse = -1.0 / (double)(k * (k + nu));
        term_dot = (term_dot * square + term * half) * inverse;
        term *= square * inverse;
        sum += term;
        sum_dot += term_dot;
    }
    *slope = sum_dot;
    return sum;
}

double bessel_adjoint(int64_t n, int64_t nu, const double *restrict z, double *restrict z_adj)
{
    double total = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (int64_t i = 0; i < n; i++)
        total += bessel_j(nu, z[i], z_adj + i);
    return total;
}
