/* How good a rate is after some steps of gradient descent, and the slope of that by the rate: the loop as written, each
 * number with its tangent, as there is one input. */
#include <math.h>
#include <stdint.h>

static double run(double rate, int64_t count, const double *restrict x, const double *restrict y, int64_t steps,
                  double least, double *restrict slope)
{
    const double scale = 2.0 / (double)count;
    double w = 0.0, w_dot = 0.0;
    for (int64_t k = 0; k < steps; k++) {
        double d = 0.0, d_dot = 0.0;
#pragma omp simd reduction(+ : d, d_dot)
        for (int64_t j = 0; j < count; j++) {
            d += x[j] * (y[j] - x[j] * w);
            d_dot -= x[j] * (x[j] * w_dot);
        }
        d *= scale;
        d_dot *= scale;
        if (fabs(d) < least)
            break;
        w_dot += d + rate * d_dot;
        w += rate * d;
    }
    double e = 0.0, e_dot = 0.0;
#pragma omp simd reduction(+ : e, e_dot)
    for (int64_t j = 0; j < count; j++) {
        const double off = y[j] - x[j] * w;
        e += off * off;
        e_dot -= 2.0 * off * (x[j] * w_dot);
    }
    const double root = sqrt(e);
    *slope = 0.5 * e_dot / root / (double)count;
    return root / (double)count;
}

double descent(double rate, int64_t count, const double *restrict x, const double *restrict y, int64_t steps,
               double *restrict slope)
{
    return run(rate, count, x, y, steps, 0.0, slope);
}

double stopping_descent(double rate, int64_t count, const double *restrict x, const double *restrict y, int64_t steps,
                        double *restrict slope)
{
    return run(rate, count, x, y, steps, 0.1, slope);
}
