/* The energy of a net of springs, and its gradient by the places of its vertices: each spring forwards and backwards at
 * once. */
#include <math.h>
#include <stdint.h>
#include <string.h>

double springs(int64_t vertices, int64_t count, const double *restrict px, const double *restrict py,
               const int64_t *restrict first, const int64_t *restrict second, const double *restrict rest,
               double *restrict px_adj, double *restrict py_adj)
{
    double energy = 0.0;
    memset(px_adj, 0, sizeof(double) * (size_t)vertices);
    memset(py_adj, 0, sizeof(double) * (size_t)vertices);
    for (int64_t e = 0; e < count; e++) {
        const int64_t a = first[e], b = second[e];
        const double dx = px[a] - px[b], dy = py[a] - py[b];
        const double length = sqrt(dx * dx + dy * dy + 1e-6), stretch = length - rest[e];
        energy += 0.5 * stretch * stretch;
        const double pull = stretch / length;
        px_adj[a] += pull * dx;
        px_adj[b] -= pull * dx;
        py_adj[a] += pull * dy;
        py_adj[b] -= pull * dy;
    }
    return energy;
}
