/* Stacked LSTM with diagonal weights: the loss of predicting each next character. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double v)
{
    return 1.0 / (1.0 + exp(-v));
}

static void layer(int64_t b, const double *restrict w, const double *restrict bias,
                  double *restrict hidden, double *restrict cell, double *restrict u)
{
    for (int64_t j = 0; j < b; j++) {
        const double forget = sigmoid(u[j] * w[j] + bias[j]);
        const double ingate = sigmoid(hidden[j] * w[b + j] + bias[b + j]);
        const double outgate = sigmoid(u[j] * w[2 * b + j] + bias[2 * b + j]);
        const double change = tanh(hidden[j] * w[3 * b + j] + bias[3 * b + j]);
        cell[j] = cell[j] * forget + ingate * change;
        hidden[j] = outgate * tanh(cell[j]);
        u[j] = hidden[j];
    }
}

double lstm(int64_t layers, int64_t b, int64_t length, const double *restrict weights,
            const double *restrict extra, const double *restrict start, const double *restrict sequence)
{
    double *state = malloc(sizeof(double) * (size_t)(2 * layers * b));
    double *u = malloc(sizeof(double) * (size_t)b);
    double total = 0.0;
    memcpy(state, start, sizeof(double) * (size_t)(2 * layers * b));
    for (int64_t t = 0; t + 1 < length; t++) {
        const double *restrict next = sequence + (t + 1) * b;
        for (int64_t j = 0; j < b; j++)
            u[j] = sequence[t * b + j] * extra[j];
        for (int64_t i = 0; i < layers; i++)
            layer(b, weights + 2 * i * 4 * b, weights + (2 * i + 1) * 4 * b, state + 2 * i * b,
                  state + (2 * i + 1) * b, u);
        double sum = 0.0;
        for (int64_t j = 0; j < b; j++) {
            u[j] = u[j] * extra[b + j] + extra[2 * b + j];
            sum += exp(u[j]);
        }
        const double shift = log(2.0 + sum);
        for (int64_t j = 0; j < b; j++)
            total += next[j] * (u[j] - shift);
    }
    free(u);
    free(state);
    return -total / (double)((length - 1) * b);
}
