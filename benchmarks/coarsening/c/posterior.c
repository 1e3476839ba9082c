/* The log posterior of a logistic regression, and its gradient by the coefficients: each row forwards and backwards at
 * once. */
#include <math.h>
#include <stdint.h>

double posterior(int64_t rows, int64_t columns, const double *restrict beta, const double *restrict x,
                 const double *restrict y, double *restrict beta_adj)
{
    double u = 0.0;
    for (int64_t j = 0; j < columns; j++) {
        u -= beta[j] * beta[j] / 2000.0;
        beta_adj[j] = -beta[j] / 1000.0;
    }
    for (int64_t i = 0; i < rows; i++) {
        const double *row = x + i * columns;
        double z = 0.0;
        for (int64_t j = 0; j < columns; j++)
            z += row[j] * beta[j];
        const double decay = exp(-z), whole = 1.0 + decay;
        u += z * (y[i] - 1.0) - log(whole);
        const double z_adj = y[i] - 1.0 + decay / whole;
        for (int64_t j = 0; j < columns; j++)
            beta_adj[j] += z_adj * row[j];
    }
    return u;
}
