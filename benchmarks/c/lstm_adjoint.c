/* Loss of a stacked LSTM with diagonal weights, and its gradient by the weights and the extra parameters.
 * Keeps gates and states of each step and layer, so that the backward pass needs no exponential. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT, HIDDEN, CELL, FORGET, INGATE, OUTGATE, CHANGE, BENT, KEPT }; /* rows of `kept`; BENT is tanh(new cell) */

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

static void layer(int64_t b, const double *restrict w, const double *restrict bias, double *restrict hidden,
                  double *restrict cell, double *restrict u, double *restrict kept)
{
    for (int64_t j = 0; j < b; j++) {
        const double forget = sigmoid(u[j] * w[j] + bias[j]);
        const double ingate = sigmoid(hidden[j] * w[b + j] + bias[b + j]);
        const double outgate = sigmoid(u[j] * w[2 * b + j] + bias[2 * b + j]);
        const double change = tanh(hidden[j] * w[3 * b + j] + bias[3 * b + j]);
        kept[INPUT * b + j] = u[j];
        kept[HIDDEN * b + j] = hidden[j];
        kept[CELL * b + j] = cell[j];
        kept[FORGET * b + j] = forget;
        kept[INGATE * b + j] = ingate;
        kept[OUTGATE * b + j] = outgate;
        kept[CHANGE * b + j] = change;
        cell[j] = cell[j] * forget + ingate * change;
        const double bent = tanh(cell[j]);
        kept[BENT * b + j] = bent;
        hidden[j] = outgate * bent;
        u[j] = hidden[j];
    }
}

static void layer_back(int64_t b, const double *restrict w, const double *restrict kept, double *restrict w_adj,
                       double *restrict bias_adj, double *restrict hidden_adj, double *restrict cell_adj,
                       double *restrict u_adj)
{
#pragma omp simd
    for (int64_t j = 0; j < b; j++) {
        const double u = kept[INPUT * b + j], hidden = kept[HIDDEN * b + j];
        const double forget = kept[FORGET * b + j], ingate = kept[INGATE * b + j];
        const double outgate = kept[OUTGATE * b + j], change = kept[CHANGE * b + j], bent = kept[BENT * b + j];
        const double h = hidden_adj[j] + u_adj[j];
        const double c = cell_adj[j] + h * outgate * (1.0 - bent * bent);
        const double f = c * kept[CELL * b + j] * forget * (1.0 - forget);
        const double i = c * change * ingate * (1.0 - ingate);
        const double o = h * bent * outgate * (1.0 - outgate);
        const double g = c * ingate * (1.0 - change * change);
        cell_adj[j] = c * forget;
        u_adj[j] = f * w[j] + o * w[2 * b + j];
        hidden_adj[j] = i * w[b + j] + g * w[3 * b + j];
        w_adj[j] += f * u;
        w_adj[b + j] += i * hidden;
        w_adj[2 * b + j] += o * u;
        w_adj[3 * b + j] += g * hidden;
        bias_adj[j] += f;
        bias_adj[b + j] += i;
        bias_adj[2 * b + j] += o;
        bias_adj[3 * b + j] += g;
    }
}

double lstm_adjoint(int64_t layers, int64_t b, int64_t length, const double *restrict weights,
                    const double *restrict extra, const double *restrict start, const double *restrict sequence,
                    double *restrict weights_adj, double *restrict extra_adj)
{
    const int64_t steps = length - 1;
    double *kept = malloc(sizeof(double) * (size_t)(steps * layers * KEPT * b));
    double *share = malloc(sizeof(double) * (size_t)(steps * b)); /* exp(y) over 2 + their sum */
    double *tops = malloc(sizeof(double) * (size_t)(steps * b));
    double *state = malloc(sizeof(double) * (size_t)(2 * layers * b));
    double *u = malloc(sizeof(double) * (size_t)b);
    double total = 0.0;
    memcpy(state, start, sizeof(double) * (size_t)(2 * layers * b));
    for (int64_t t = 0; t < steps; t++) {
        const double *restrict next = sequence + (t + 1) * b;
        for (int64_t j = 0; j < b; j++)
            u[j] = sequence[t * b + j] * extra[j];
        for (int64_t i = 0; i < layers; i++)
            layer(b, weights + 2 * i * 4 * b, weights + (2 * i + 1) * 4 * b, state + 2 * i * b,
                  state + (2 * i + 1) * b, u, kept + (t * layers + i) * KEPT * b);
        double sum = 2.0;
        for (int64_t j = 0; j < b; j++) {
            tops[t * b + j] = u[j];
            u[j] = u[j] * extra[b + j] + extra[2 * b + j];
            share[t * b + j] = exp(u[j]);
            sum += share[t * b + j];
        }
        const double shift = log(sum), inverse = 1.0 / sum;
        for (int64_t j = 0; j < b; j++) {
            share[t * b + j] *= inverse;
            total += next[j] * (u[j] - shift);
        }
    }

    const double scale = -1.0 / (double)(steps * b);
    memset(weights_adj, 0, sizeof(double) * (size_t)(8 * layers * b));
    memset(extra_adj, 0, sizeof(double) * (size_t)(3 * b));
    memset(state, 0, sizeof(double) * (size_t)(2 * layers * b)); /* from here on its adjoint */
    for (int64_t t = steps - 1; t >= 0; t--) {
        const double *restrict next = sequence + (t + 1) * b;
        double weight = 0.0;
        for (int64_t j = 0; j < b; j++)
            weight += next[j];
        for (int64_t j = 0; j < b; j++) {
            const double y_adj = scale * (next[j] - weight * share[t * b + j]);
            extra_adj[b + j] += y_adj * tops[t * b + j];
            extra_adj[2 * b + j] += y_adj;
            u[j] = y_adj * extra[b + j];
        }
        for (int64_t i = layers - 1; i >= 0; i--)
            layer_back(b, weights + 2 * i * 4 * b, kept + (t * layers + i) * KEPT * b, weights_adj + 2 * i * 4 * b,
                       weights_adj + (2 * i + 1) * 4 * b, state + 2 * i * b, state + (2 * i + 1) * b, u);
        for (int64_t j = 0; j < b; j++)
            extra_adj[j] += u[j] * sequence[t * b + j];
    }
    free(u);
    free(state);
    free(tops);
    free(share);
    free(kept);
    return total * scale;
}
