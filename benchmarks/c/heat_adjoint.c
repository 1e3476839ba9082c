/* The sum of squares of the final state of the heat equation, and its gradient by the first state.
 * The steps are linear: nothing is kept. Inside, the adjoint takes the same steps, with zeros on the boundary; what
 * would flow out of it is the boundary's own adjoint. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void step(int64_t rows, int64_t cols, double rate, const double *restrict u, double *restrict v)
{
#pragma omp for schedule(static)
    for (int64_t i = 1; i < rows - 1; i++) {
        const double *restrict up = u + (i - 1) * cols;
        const double *restrict mid = u + i * cols;
        const double *restrict down = u + (i + 1) * cols;
        double *restrict out = v + i * cols;
        for (int64_t j = 1; j < cols - 1; j++)
            out[j] = mid[j] + rate * (up[j] + down[j] + mid[j - 1] + mid[j + 1] - 4.0 * mid[j]);
    }
}

/* Adds to the adjoints of the boundary, kept in `edges`: top, bottom, left and right. */
static void flow_out(int64_t rows, int64_t cols, double rate, const double *restrict u, double *restrict edges)
{
    double *restrict top = edges, *restrict bottom = top + cols, *restrict left = bottom + cols,
                     *restrict right = left + rows;
    for (int64_t j = 1; j < cols - 1; j++) {
        top[j] += rate * u[cols + j];
        bottom[j] += rate * u[(rows - 2) * cols + j];
    }
    for (int64_t i = 1; i < rows - 1; i++) {
        left[i] += rate * u[i * cols + 1];
        right[i] += rate * u[i * cols + cols - 2];
    }
}

double heat_adjoint(int64_t rows, int64_t cols, int64_t steps, double rate, const double *restrict start,
                    double *restrict gradient)
{
    const int64_t size = rows * cols;
    const size_t bytes = sizeof(double) * (size_t)size;
    double *other = malloc(bytes);
    double *edges = calloc((size_t)(2 * (rows + cols)), sizeof(double));
    double *from = gradient, *to = other;
    double total = 0.0;
    memcpy(from, start, bytes);
    memcpy(to, start, bytes);
#pragma omp parallel firstprivate(from, to)
    {
        for (int64_t t = 0; t < steps; t++) {
            step(rows, cols, rate, from, to);
            double *swap = from;
            from = to;
            to = swap;
        }
#pragma omp for simd schedule(static) reduction(+ : total)
        for (int64_t i = 0; i < size; i++)
            total += from[i] * from[i];
#pragma omp single
        {
            memset(to, 0, bytes);
            for (int64_t i = 0; i < rows; i++) {
                const int edge = i == 0 || i == rows - 1;
                edges[2 * cols + i] = edge ? 0.0 : 2.0 * from[i * cols];
                edges[2 * cols + rows + i] = edge ? 0.0 : 2.0 * from[i * cols + cols - 1];
            }
            for (int64_t j = 0; j < cols; j++) {
                edges[j] = 2.0 * from[j];
                edges[cols + j] = 2.0 * from[(rows - 1) * cols + j];
            }
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++) {
            double *restrict row = from + i * cols;
            for (int64_t j = 0; j < cols; j++)
                row[j] = i == 0 || i == rows - 1 || j == 0 || j == cols - 1 ? 0.0 : 2.0 * row[j];
        }
        for (int64_t t = 0; t < steps; t++) {
#pragma omp single nowait
            flow_out(rows, cols, rate, from, edges);
            step(rows, cols, rate, from, to);
            double *swap = from;
            from = to;
            to = swap;
        }
    }
    /* As many steps backwards as forwards: the adjoint is where the first state was. */
    for (int64_t j = 0; j < cols; j++) {
        gradient[j] = edges[j];
        gradient[(rows - 1) * cols + j] = edges[cols + j];
    }
    for (int64_t i = 1; i < rows - 1; i++) {
        gradient[i * cols] = edges[2 * cols + i];
        gradient[i * cols + cols - 1] = edges[2 * cols + rows + i];
    }
    free(edges);
    free(other);
    return total;
}
