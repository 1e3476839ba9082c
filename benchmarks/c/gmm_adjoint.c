/* Log posterior of a Gaussian mixture with a Wishart prior, and its gradient by alpha, mu, q and l.
 * The products are done for BLOCK points at once; z = Q (x - mu) of a block and all components is kept for the way
 * back, where Q's adjoint is a sum of outer products. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, TILE = 4, WIDTH = 16 };

typedef double Lanes __attribute__((vector_size(64)));

static double *doubles(int64_t count)
{
    return aligned_alloc(64, (sizeof(double) * (size_t)count + 63) / 64 * 64);
}

static double *zeros(int64_t count)
{
    return memset(doubles(count), 0, sizeof(double) * (size_t)count);
}

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

/* z = Q (x_p - mu) for the BLOCK points in xt[d][BLOCK]; out is |z|^2. */
static void forwards(int64_t d, const double *restrict Q, const double *restrict mu, const double *restrict xt,
                     double *restrict centred, double *restrict z, double *restrict out)
{
    for (int64_t j = 0; j < d; j++)
        for (int p = 0; p < BLOCK; p++)
            centred[j * BLOCK + p] = xt[j * BLOCK + p] - mu[j];
    double total[BLOCK] = {0.0};
    for (int64_t i = 0; i < d; i++) {
        const double *restrict row = Q + i * d;
        double sum[BLOCK] = {0.0};
        for (int64_t j = 0; j <= i; j++) {
#pragma omp simd
            for (int p = 0; p < BLOCK; p++)
                sum[p] += row[j] * centred[j * BLOCK + p];
        }
#pragma omp simd
        for (int p = 0; p < BLOCK; p++) {
            total[p] += sum[p] * sum[p];
            z[i * BLOCK + p] = sum[p];
        }
    }
    for (int p = 0; p < BLOCK; p++)
        out[p] = total[p];
}

/* Adds to Q's adjoint and to that of z summed over points, from the points' shares of the component. The sum of outer
 * products is done in tiles of TILE rows and WIDTH columns; rows of `centred` and Q_adj are `wide` numbers long. */
static void backwards(int64_t d, int64_t wide, const double *restrict x, const double *restrict mu,
                      const double *restrict z, const double *restrict share, double *restrict centred,
                      double *restrict Q_adj, double *restrict z_sum)
{
    for (int p = 0; p < BLOCK; p++)
        for (int64_t j = 0; j < d; j++)
            centred[p * wide + j] = x[p * d + j] - mu[j];
    for (int64_t first = 0; first < d; first += TILE) {
        double z_adj[BLOCK][TILE] = {{0.0}};
        for (int a = 0; a < TILE && first + a < d; a++)
            for (int p = 0; p < BLOCK; p++) {
                z_adj[p][a] = -share[p] * z[(first + a) * BLOCK + p];
                z_sum[first + a] += z_adj[p][a];
            }
        for (int64_t left = 0; left < first + TILE && left < d; left += WIDTH) {
            Lanes sum[TILE][2] = {{{0.0}}};
            for (int p = 0; p < BLOCK; p++) {
                const Lanes *row = (const Lanes *)(centred + p * wide + left);
#pragma GCC unroll 4
                for (int a = 0; a < TILE; a++) {
                    sum[a][0] += z_adj[p][a] * row[0];
                    sum[a][1] += z_adj[p][a] * row[1];
                }
            }
#pragma GCC unroll 4
            for (int a = 0; a < TILE; a++) {
                Lanes *row = (Lanes *)(Q_adj + (first + a) * wide + left);
                row[0] += sum[a][0];
                row[1] += sum[a][1];
            }
        }
    }
}

/* log sum exp(x); x becomes its gradient, where next to nothing is nothing: arithmetic near underflow is slow. */
static double softmax(int64_t n, double *restrict x, int64_t stride)
{
    double top = -DBL_MAX, sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, x[i * stride]);
    for (int64_t i = 0; i < n; i++) {
        x[i * stride] = exp(x[i * stride] - top);
        sum += x[i * stride];
    }
    for (int64_t i = 0; i < n; i++)
        x[i * stride] = x[i * stride] < 1e-290 ? 0.0 : x[i * stride] / sum;
    return top + log(sum);
}

static double log_gamma_distrib(double a, int64_t d)
{
    double sum = 0.25 * (double)(d * (d - 1)) * log(M_PI);
    for (int64_t j = 1; j <= d; j++)
        sum += lgamma(a + 0.5 * (double)(1 - j));
    return sum;
}

double gmm_adjoint(int64_t n, int64_t d, int64_t k, const double *restrict x, const double *restrict alpha,
                   const double *restrict mu, const double *restrict q, const double *restrict l, int64_t m,
                   double gamma, double *restrict alpha_adj, double *restrict mu_adj, double *restrict q_adj,
                   double *restrict l_adj)
{
    const int64_t packed = d * (d - 1) / 2;
    const int64_t wide = (d + WIDTH - 1) / WIDTH * WIDTH, tall = (d + TILE - 1) / TILE * TILE;
    double *Q = doubles(k * d * d), *bias = doubles(k);
    double *Q_adj = zeros(k * tall * wide);
    double *z_sum = zeros(k * d);
    double *shares = zeros(k); /* of the components, summed over points */
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
        double *xs = doubles(BLOCK * d), *xt = doubles(d * BLOCK), *centred = doubles(d * BLOCK);
        double *rows = zeros(BLOCK * wide);
        double *z = doubles(k * d * BLOCK), *score = doubles(k * BLOCK);
        double *my_Q_adj = zeros(k * tall * wide);
        double *my_z_sum = zeros(k * d);
        double *my_shares = zeros(k);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < n; first += BLOCK) {
            const int64_t count = n - first < BLOCK ? n - first : BLOCK;
            memset(xs, 0, sizeof(double) * (size_t)(BLOCK * d));
            memcpy(xs, x + first * d, sizeof(double) * (size_t)(count * d));
            for (int64_t j = 0; j < d; j++)
                for (int64_t p = 0; p < BLOCK; p++)
                    xt[j * BLOCK + p] = xs[p * d + j];
            for (int64_t c = 0; c < k; c++) {
                double *restrict s = score + c * BLOCK;
                forwards(d, Q + c * d * d, mu + c * d, xt, centred, z + c * d * BLOCK, s);
                for (int p = 0; p < BLOCK; p++)
                    s[p] = bias[c] - 0.5 * s[p];
            }
            for (int64_t p = 0; p < BLOCK; p++) {
                if (p < count)
                    likelihood += softmax(k, score + p, BLOCK);
                else
                    for (int64_t c = 0; c < k; c++)
                        score[c * BLOCK + p] = 0.0;
            }
            for (int64_t c = 0; c < k; c++) {
                const double *restrict share = score + c * BLOCK;
                for (int p = 0; p < BLOCK; p++)
                    my_shares[c] += share[p];
                backwards(d, wide, xs, mu + c * d, z + c * d * BLOCK, share, rows, my_Q_adj + c * tall * wide,
                          my_z_sum + c * d);
            }
        }
#pragma omp critical
        {
            for (int64_t i = 0; i < k * tall * wide; i++)
                Q_adj[i] += my_Q_adj[i];
            for (int64_t i = 0; i < k * d; i++)
                z_sum[i] += my_z_sum[i];
            for (int64_t c = 0; c < k; c++)
                shares[c] += my_shares[c];
        }
        free(my_shares);
        free(my_z_sum);
        free(my_Q_adj);
        free(score);
        free(z);
        free(rows);
        free(centred);
        free(xt);
        free(xs);
    }

    memcpy(alpha_adj, alpha, sizeof(double) * (size_t)k);
    const double normal = softmax(k, alpha_adj, 1), square = gamma * gamma;
    memset(mu_adj, 0, sizeof(double) * (size_t)(k * d));
    for (int64_t c = 0; c < k; c++) {
        const double *restrict Qc = Q + c * d * d, *restrict Qc_adj = Q_adj + c * tall * wide;
        double *restrict lc_adj = l_adj + c * packed;
        alpha_adj[c] = shares[c] - (double)n * alpha_adj[c];
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j <= i; j++)
                mu_adj[c * d + j] -= Qc[i * d + j] * z_sum[c * d + i];
        for (int64_t j = 0; j < d; j++) {
            const double e = Qc[j * d + j];
            q_adj[c * d + j] = shares[c] + (double)m + e * (Qc_adj[j * wide + j] - square * e);
            for (int64_t i = j + 1; i < d; i++, lc_adj++)
                *lc_adj = Qc_adj[i * wide + j] - square * Qc[i * d + j];
        }
    }
    free(shares);
    free(z_sum);
    free(Q_adj);
    free(bias);
    free(Q);

    const double freedom = (double)(d + m + 1);
    return -0.5 * (double)(n * d) * log(2.0 * M_PI) - (double)n * normal + likelihood
           + (double)k * (freedom * (double)d * (log(gamma) - 0.5 * log(2.0))
                          - log_gamma_distrib(0.5 * freedom, d))
           + prior;
}
