/* Bundle adjustment: half the sum of squares of residuals and weight errors, and its gradient by cameras, points and
 * weights. Each observation goes forwards and backwards at once. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#pragma GCC optimize("no-tree-slp-vectorize") /* vectors of three: packing them costs more than it saves */

static void cross(const double *restrict a, const double *restrict b, double *restrict out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot(const double *restrict a, const double *restrict b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

typedef struct { /* of a rotation that is not zero */
    double axis[3], turned[3], inverse, c, s, part;
} Turn;

static int rotate(const double *restrict r, const double *restrict y, Turn *restrict turn, double *restrict z)
{
    const double square = dot(r, r);
    if (square == 0.0) {
        cross(r, y, z);
        for (int k = 0; k < 3; k++)
            z[k] += y[k];
        return 0;
    }
    const double theta = sqrt(square);
    turn->c = cos(theta);
    turn->s = sin(theta);
    turn->inverse = 1.0 / theta;
    for (int k = 0; k < 3; k++)
        turn->axis[k] = r[k] * turn->inverse;
    turn->part = dot(turn->axis, y);
    cross(turn->axis, y, turn->turned);
    for (int k = 0; k < 3; k++)
        z[k] = y[k] * turn->c + turn->turned[k] * turn->s + turn->axis[k] * turn->part * (1.0 - turn->c);
    return 1;
}

static void rotate_back(const double *restrict r, const double *restrict y, const Turn *restrict turn, int turned,
                        const double *restrict z_adj, double *restrict r_adj, double *restrict y_adj)
{
    if (!turned) {
        cross(y, z_adj, r_adj);
        cross(z_adj, r, y_adj);
        for (int k = 0; k < 3; k++)
            y_adj[k] += z_adj[k];
        return;
    }
    const double *restrict axis = turn->axis;
    const double along = dot(z_adj, axis), rest = 1.0 - turn->c;
    const double c_adj = dot(z_adj, y) - along * turn->part, s_adj = dot(z_adj, turn->turned);
    const double theta_adj = turn->c * s_adj - turn->s * c_adj;
    double axis_adj[3], y_cross[3], z_cross[3];
    cross(y, z_adj, y_cross);
    cross(z_adj, axis, z_cross);
    for (int k = 0; k < 3; k++) {
        y_adj[k] = turn->c * z_adj[k] + turn->s * z_cross[k] + along * rest * axis[k];
        axis_adj[k] = turn->s * y_cross[k] + rest * (turn->part * z_adj[k] + along * y[k]);
    }
    const double radial = dot(axis, axis_adj);
    for (int k = 0; k < 3; k++)
        r_adj[k] = (axis_adj[k] - axis[k] * radial) * turn->inverse + axis[k] * theta_adj;
}

double ba_adjoint(int64_t n, int64_t m, int64_t p, const double *restrict cameras, const double *restrict points,
                  const double *restrict weights, const double *restrict features,
                  const int64_t *restrict camera_of, const int64_t *restrict point_of,
                  double *restrict cameras_adj, double *restrict points_adj, double *restrict weights_adj)
{
    double total = 0.0;
    memset(cameras_adj, 0, sizeof(double) * (size_t)(11 * n));
    memset(points_adj, 0, sizeof(double) * (size_t)(3 * m));
#pragma omp parallel for schedule(static) reduction(+ : total, cameras_adj[: 11 * n], points_adj[: 3 * m])
    for (int64_t i = 0; i < p; i++) {
        const double *restrict camera = cameras + 11 * camera_of[i];
        const double *restrict point = points + 3 * point_of[i];
        const double w = weights[i];
        const double y[3] = {point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]};
        double z[3];
        Turn turn;
        const int turned = rotate(camera, y, &turn, z);
        const double inverse = 1.0 / z[2];
        const double p0 = z[0] * inverse, p1 = z[1] * inverse;
        const double s = p0 * p0 + p1 * p1;
        const double bend = 1.0 + camera[9] * s + camera[10] * s * s, scale = camera[6] * bend;
        const double e0 = scale * p0 + camera[7] - features[2 * i];
        const double e1 = scale * p1 + camera[8] - features[2 * i + 1];
        const double off = 1.0 - w * w;
        total += w * w * (e0 * e0 + e1 * e1) + off * off;

        const double e0_adj = w * w * e0, e1_adj = w * w * e1;
        weights_adj[i] = w * (e0 * e0 + e1 * e1) - 2.0 * w * off;
        const double scale_adj = e0_adj * p0 + e1_adj * p1, bend_adj = scale_adj * camera[6];
        const double s_adj = bend_adj * (camera[9] + 2.0 * camera[10] * s);
        const double p0_adj = e0_adj * scale + 2.0 * s_adj * p0, p1_adj = e1_adj * scale + 2.0 * s_adj * p1;
        const double z_adj[3] = {p0_adj * inverse, p1_adj * inverse, -(p0_adj * p0 + p1_adj * p1) * inverse};
        double r_adj[3], y_adj[3];
        rotate_back(camera, y, &turn, turned, z_adj, r_adj, y_adj);

        double *restrict camera_adj = cameras_adj + 11 * camera_of[i];
        double *restrict point_adj = points_adj + 3 * point_of[i];
        for (int k = 0; k < 3; k++) {
            camera_adj[k] += r_adj[k];
            camera_adj[3 + k] -= y_adj[k];
            point_adj[k] += y_adj[k];
        }
        camera_adj[6] += scale_adj * bend;
        camera_adj[7] += e0_adj;
        camera_adj[8] += e1_adj;
        camera_adj[9] += bend_adj * s;
        camera_adj[10] += bend_adj * s * s;
    }
    return 0.5 * total;
}
