/* Bundle adjustment: the residuals of p observations and the errors of their weights.
 * A camera is rotation vector (3), centre (3), focal length, principal point (2), radial distortion (2). */
#include <math.h>
#include <stdint.h>

static void rotate(const double *restrict r, const double *restrict y, double *restrict z)
{
    const double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    if (square == 0.0) {
        z[0] = y[0] + r[1] * y[2] - r[2] * y[1];
        z[1] = y[1] + r[2] * y[0] - r[0] * y[2];
        z[2] = y[2] + r[0] * y[1] - r[1] * y[0];
        return;
    }
    const double theta = sqrt(square), c = cos(theta), s = sin(theta), inverse = 1.0 / theta;
    const double a0 = r[0] * inverse, a1 = r[1] * inverse, a2 = r[2] * inverse;
    const double along = (a0 * y[0] + a1 * y[1] + a2 * y[2]) * (1.0 - c);
    z[0] = y[0] * c + (a1 * y[2] - a2 * y[1]) * s + a0 * along;
    z[1] = y[1] * c + (a2 * y[0] - a0 * y[2]) * s + a1 * along;
    z[2] = y[2] * c + (a0 * y[1] - a1 * y[0]) * s + a2 * along;
}

void ba(int64_t p, const double *restrict cameras, const double *restrict points,
        const double *restrict weights, const double *restrict features,
        const int64_t *restrict camera_of, const int64_t *restrict point_of,
        double *restrict residuals, double *restrict weight_errors)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < p; i++) {
        const double *restrict camera = cameras + 11 * camera_of[i];
        const double *restrict point = points + 3 * point_of[i];
        const double w = weights[i];
        const double y[3] = {point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]};
        double z[3];
        rotate(camera, y, z);
        const double inverse = 1.0 / z[2];
        const double p0 = z[0] * inverse, p1 = z[1] * inverse;
        const double s = p0 * p0 + p1 * p1;
        const double scale = camera[6] * (1.0 + camera[9] * s + camera[10] * s * s);
        residuals[2 * i] = w * (scale * p0 + camera[7] - features[2 * i]);
        residuals[2 * i + 1] = w * (scale * p1 + camera[8] - features[2 * i + 1]);
        weight_errors[i] = 1.0 - w * w;
    }
}
