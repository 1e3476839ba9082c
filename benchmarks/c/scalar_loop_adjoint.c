/* The mean of x^2 along x <- a sin(b x + c), and its gradient by x, a, b, c. Keeps x and the cosine of each step. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

double scalar_loop_adjoint(double x, double a, double b, double c, int64_t n, double *restrict gradient)
{
    double *xs = malloc(sizeof(double) * (size_t)(n + 1));
    double *cosines = malloc(sizeof(double) * (size_t)n);
    double total = 0.0;
    xs[0] = x;
    for (int64_t i = 0; i < n; i++) {
        const double angle = b * xs[i] + c;
        xs[i + 1] = a * sin(angle);
        cosines[i] = cos(angle);
        total += xs[i + 1] * xs[i + 1];
    }
    const double twice = 2.0 / (double)n, inverse = 1.0 / a;
    double x_adj = 0.0, a_adj = 0.0, b_adj = 0.0, c_adj = 0.0;
    for (int64_t i = n - 1; i >= 0; i--) {
        x_adj += twice * xs[i + 1];
        a_adj += x_adj * xs[i + 1] * inverse;
        const double angle_adj = x_adj * a * cosines[i];
        b_adj += angle_adj * xs[i];
        c_adj += angle_adj;
        x_adj = angle_adj * b;
    }
    free(cosines);
    free(xs);
    gradient[0] = x_adj;
    gradient[1] = a_adj;
    gradient[2] = b_adj;
    gradient[3] = c_adj;
    return total / (double)n;
}
