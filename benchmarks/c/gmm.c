/* Log posterior of a Gaussian mixture with a Wishart prior on the precisions.
 * The triangular products are done for BLOCK points at once, so that they vectorise over points. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { BLOCK = 16 };

/* Q = exp(q) on the diagonal, l below it (packed by columns), row-major. Returns the sum of squares. */
static double unpack(int64_t d, const double *restrict q, const double *restrict l, double *restrict Q)
{
    double squares = 0.0;
    for (int64_t j = 0; j < d; j++) {
        Q[j * d + j] = exp(q[j]);
        squares += Q[j * d + j] * Q[j * d + j];
        for (int64_t i = j + 1; i < d; i++, l++) {
            Q[i * d + j] = *l;
            squares += *l * *l;
        }
    }
    return squares;
}

/* |Q (x_p - mu)|^2 for the BLOCK points whose coordinates lie in xt[d][BLOCK]. */
static void distances(int64_t d, const double *restrict Q, const double *restrict mu,
                      const double *restrict xt, double *restrict centred, double *restrict out)
{
    for (int64_t j = 0; j < d; j++)
        for (int p = 0; p < BLOCK; p++)
            centred[j * BLOCK + p] = xt[j * BLOCK + p] - mu[j];
    double total[BLOCK] = {0.0};
    for (int64_t i = 0; i < d; i++) {
        const double *restrict row = Q + i * d;
        double z[BLOCK] = {0.0};
        for (int64_t j = 0; j <= i; j++) {
#pragma omp simd
            for (int p = 0; p < BLOCK; p++)
                z[p] += row[j] * centred[j * BLOCK + p];
        }
#pragma omp simd
        for (int p = 0; p < BLOCK; p++)
            total[p] += z[p] * z[p];
    }
    for (int p = 0; p < BLOCK; p++)
        out[p] = total[p];
}

static double logsumexp(int64_t n, const double *restrict x, int64_t stride)
{
    double top = -DBL_MAX, sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i * stride]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * stride] - top);
    return top + log(sum);
}

static double log_gamma_distrib(double a, int64_t d)
{
    double sum = 0.25 * (double)(d * (d - 1)) * log(M_PI);
    for (int64_t j = 1; j <= d; j++)
        sum += lgamma(a + 0.5 * (double)(1 - j));
    return sum;
}

double gmm(int64_t n, int64_t d, int64_t k, const double *restrict x, const double *restrict alpha,
           const double *restrict mu, const double *restrict q, const double *restrict l, int64_t m,
           double gamma)
{
    const int64_t packed = d * (d - 1) / 2;
    double *Q = malloc(sizeof(double) * (size_t)(k * d * d));
    double *bias = malloc(sizeof(double) * (size_t)k);
    double prior = 0.0, likelihood = 0.0;

    for (int64_t c = 0; c < k; c++) {
        double logdet = 0.0;
        for (int64_t j = 0; j < d; j++)
            logdet += q[c * d + j];
        bias[c] = alpha[c] + logdet;
        const double squares = unpack(d, q + c * d, l + c * packed, Q + c * d * d);
        prior += (double)m * logdet - 0.5 * gamma * gamma * squares;
    }

#pragma omp parallel reduction(+ : likelihood)
    {
        double *xt = malloc(sizeof(double) * (size_t)(d * BLOCK));
        double *centred = malloc(sizeof(double) * (size_t)(d * BLOCK));
        double *score = malloc(sizeof(double) * (size_t)(k * BLOCK));
#pragma omp for schedule(static)
        for (int64_t first = 0; first < n; first += BLOCK) {
            const int64_t count = n - first < BLOCK ? n - first : BLOCK;
            for (int64_t j = 0; j < d; j++)
                for (int64_t p = 0; p < BLOCK; p++)
                    xt[j * BLOCK + p] = p < count ? x[(first + p) * d + j] : 0.0;
            for (int64_t c = 0; c < k; c++) {
                double *restrict s = score + c * BLOCK;
                distances(d, Q + c * d * d, mu + c * d, xt, centred, s);
                for (int p = 0; p < BLOCK; p++)
                    s[p] = bias[c] - 0.5 * s[p];
            }
            for (int64_t p = 0; p < count; p++)
                likelihood += logsumexp(k, score + p, BLOCK);
        }
        free(score);
        free(centred);
        free(xt);
    }
    free(bias);
    free(Q);

    const double freedom = (double)(d + m + 1);
    return -0.5 * (double)(n * d) * log(2.0 * M_PI) - (double)n * logsumexp(k, alpha, 1) + likelihood
           + (double)k * (freedom * (double)d * (log(gamma) - 0.5 * log(2.0))
                          - log_gamma_distrib(0.5 * freedom, d))
           + prior;
}
