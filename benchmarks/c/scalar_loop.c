/* x <- a sin(b x + c), n times; the mean of x^2 along the way. */
#include <math.h>
#include <stdint.h>

double scalar_loop(double x, double a, double b, double c, int64_t n)
{
    double total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        x = a * sin(b * x + c);
        total += x * x;
    }
    return total / (double)n;
}
