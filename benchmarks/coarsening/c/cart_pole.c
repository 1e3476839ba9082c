/* The loss of some steps of a cart with a pole, and its gradient by the actions. Keeps what each step computes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { /* `side` and `tilt` are x0 and x2 after the step */
    double x3, s, c, r, q, inverse, side, tilt;
} Step;

double cart_pole(int64_t n, const double *restrict actions, double x0, double x1, double x2, double x3,
                 double *restrict actions_adj)
{
    Step *steps = malloc(sizeof(Step) * (size_t)n);
    double loss = 0.0;
    for (int64_t k = 0; k < n; k++) {
        const double s = sin(x2), c = cos(x2);
        const double r = 9.0 * actions[k] + 0.045 * x3 * x3 * s;
        const double inverse = 1.0 / (0.65 - 0.4 * c * c);
        const double q = (9.8 * s - r * c) * inverse, p = r - 0.045 * q * c;
        const double old = x3;
        x0 += 0.02 * x1;
        x1 += 0.02 * p;
        x2 += 0.02 * x3;
        x3 += 0.02 * q;
        const double lack = 0.5 - fmax(0.0, (2.4 - fabs(x0)) * (0.21 - fabs(x2)));
        loss += lack * lack;
        steps[k] = (Step){old, s, c, r, q, inverse, x0, x2};
    }
    double x0_adj = 0.0, x1_adj = 0.0, x2_adj = 0.0, x3_adj = 0.0;
    for (int64_t k = n - 1; k >= 0; k--) {
        const Step *t = steps + k;
        const double free_side = 2.4 - fabs(t->side), free_tilt = 0.21 - fabs(t->tilt), room = free_side * free_tilt;
        if (room > 0.0) {
            const double room_adj = -2.0 * (0.5 - room);
            x0_adj -= copysign(1.0, t->side) * free_tilt * room_adj;
            x2_adj -= copysign(1.0, t->tilt) * free_side * room_adj;
        }
        const double p_adj = 0.02 * x1_adj, q_adj = 0.02 * x3_adj - 0.045 * t->c * p_adj;
        const double top_adj = q_adj * t->inverse, below_adj = -t->q * top_adj;
        const double r_adj = p_adj - t->c * top_adj;
        const double c_adj = -0.045 * t->q * p_adj - t->r * top_adj - 0.8 * t->c * below_adj;
        const double s_adj = 9.8 * top_adj + 0.045 * t->x3 * t->x3 * r_adj;
        actions_adj[k] = 9.0 * r_adj;
        x3_adj += 0.02 * x2_adj + 0.09 * t->x3 * t->s * r_adj;
        x2_adj += t->c * s_adj - t->s * c_adj;
        x1_adj += 0.02 * x0_adj;
    }
    free(steps);
    return loss;
}
