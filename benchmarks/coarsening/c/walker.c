/* How well a figure walks, and the gradient of that by its torques. Keeps of each step what the way back needs: cosines,
 * which joints came to their limits, and the legs that touch the ground. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { JOINTS = 4, LEGS = 2, PARTS = 2 };

typedef struct {
    double depth, foot, c[PARTS], s[PARTS];
} Leg;

typedef struct {
    double bend[JOINTS], height; /* the cosines of the angles before the step, the height after it */
    int limited[JOINTS];
    Leg legs[LEGS];
} Step;

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static int inside(double value, double low, double high)
{
    return value >= low && value <= high;
}

static Leg reach(const double *restrict angle, double height)
{
    Leg leg = {.depth = -height};
    double turn = 0.0;
    for (int k = 0; k < PARTS; k++) {
        turn += angle[k];
        leg.c[k] = cos(turn);
        leg.s[k] = sin(turn);
        leg.depth += 0.8 * leg.c[k];
        leg.foot += 0.8 * leg.s[k];
    }
    return leg;
}

/* What `reach` does to the angles, backwards. */
static void reach_back(const Leg *restrict leg, double depth_adj, double foot_adj, double *restrict angle_adj)
{
    double turn_adj = 0.0;
    for (int k = PARTS - 1; k >= 0; k--) {
        turn_adj += 0.8 * (leg->c[k] * foot_adj - leg->s[k] * depth_adj);
        angle_adj[k] += turn_adj;
    }
}

double walker(int64_t n, const double *restrict torques, double *restrict torques_adj)
{
    Step *steps = malloc(sizeof(Step) * (size_t)n);
    double angle[JOINTS], rate[JOINTS] = {0.0};
    double x = 0.0, height = 1.6, speed = 0.3, rise = 0.0, effort = 0.0, wobble = 0.0;
    for (int j = 0; j < JOINTS; j++)
        angle[j] = 0.1 * (j + 1);
    for (int64_t t = 0; t < n; t++) {
        Step *step = steps + t;
        for (int j = 0; j < JOINTS; j++) {
            const double push = clamp(torques[JOINTS * t + j], -2.0, 2.0);
            effort += push * push;
            step->bend[j] = cos(angle[j]);
            rate[j] = 0.98 * rate[j] + 0.02 * (push - 3.0 * sin(angle[j]));
            angle[j] += 0.02 * rate[j];
            step->limited[j] = !inside(angle[j], -1.2, 1.2);
            if (step->limited[j]) {
                angle[j] = clamp(angle[j], -1.2, 1.2);
                rate[j] = 0.0;
            }
        }
        for (int l = 0; l < LEGS; l++) {
            const Leg leg = step->legs[l] = reach(angle + PARTS * l, height);
            if (leg.depth > 0.0) {
                rise += 0.02 * 40.0 * leg.depth;
                speed += 0.1 * clamp(0.6 * leg.depth * (0.5 - leg.foot), -0.4, 0.4);
            }
        }
        rise -= 0.02 * 9.81 * 0.1;
        height += 0.02 * rise;
        x += 0.02 * speed;
        wobble += (height - 1.6) * (height - 1.6);
        step->height = height;
    }

    double angle_adj[JOINTS] = {0.0}, rate_adj[JOINTS] = {0.0};
    double height_adj = 0.0, speed_adj = 0.0, rise_adj = 0.0;
    for (int64_t t = n - 1; t >= 0; t--) {
        const Step *step = steps + t;
        height_adj -= 0.2 * (step->height - 1.6);
        speed_adj += 0.02;
        rise_adj += 0.02 * height_adj;
        for (int l = 0; l < LEGS; l++) {
            const Leg *leg = step->legs + l;
            if (leg->depth > 0.0) {
                const double ahead = 0.5 - leg->foot;
                const double grip_adj = inside(0.6 * leg->depth * ahead, -0.4, 0.4) ? 0.06 * speed_adj : 0.0;
                const double depth_adj = 0.8 * rise_adj + ahead * grip_adj;
                reach_back(leg, depth_adj, -leg->depth * grip_adj, angle_adj + PARTS * l);
                height_adj -= depth_adj;
            }
        }
        for (int j = 0; j < JOINTS; j++) {
            const double torque = torques[JOINTS * t + j];
            if (step->limited[j])
                angle_adj[j] = rate_adj[j] = 0.0;
            rate_adj[j] += 0.02 * angle_adj[j];
            torques_adj[JOINTS * t + j] = inside(torque, -2.0, 2.0) ? 0.02 * rate_adj[j] - 0.002 * torque : 0.0;
            angle_adj[j] -= 0.06 * step->bend[j] * rate_adj[j];
            rate_adj[j] *= 0.98;
        }
    }
    free(steps);
    return x - 0.001 * effort - 0.1 * wobble;
}
