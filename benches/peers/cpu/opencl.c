// The kernels in OpenCL through PoCL, by the protocol of inputs.h: opencl KERNEL N SOURCE.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "inputs.h"

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;
static cl_mem bins;
static size_t grid[2], group[2];
static int dimensions;
static cl_uint arguments;

static void check(cl_int error, const char *what) {
    if (error == CL_SUCCESS) return;
    fprintf(stderr, "OpenCL: %s failed with %d\n", what, error);
    exit(2);
}

static cl_mem buffer(void *data, size_t bytes) {
    cl_int error;
    cl_mem made = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, bytes, data, &error);
    check(error, "a buffer");
    check(clSetKernelArg(kernel, arguments++, sizeof made, &made), "an argument");
    return made;
}

static void number(float x) { check(clSetKernelArg(kernel, arguments++, sizeof x, &x), "an argument"); }
static void count(cl_int x) { check(clSetKernelArg(kernel, arguments++, sizeof x, &x), "an argument"); }

static void over(size_t x, size_t y, size_t group_x) {
    dimensions = y ? 2 : 1;
    grid[0] = x, grid[1] = y, group[0] = group_x, group[1] = 1;
}

static void run(void) {
    if (bins) {
        cl_uint zero = 0;
        check(clEnqueueFillBuffer(queue, bins, &zero, 4, 0, 1024, 0, NULL, NULL), "a fill");
    }
    check(clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, grid, group, 0, NULL, NULL), "a run");
    check(clFinish(queue), "waiting");
}

static char *text_of(const char *file) {
    FILE *in = fopen(file, "rb");
    if (!in) fprintf(stderr, "%s cannot be read\n", file), exit(2);
    char *text = calloc(1 << 16, 1);
    if (!fread(text, 1, (1 << 16) - 1, in)) fprintf(stderr, "%s is empty\n", file), exit(2);
    fclose(in);
    return text;
}

int main(int words, char **word) {
    if (words < 4) return fprintf(stderr, "usage: opencl KERNEL N SOURCE\n"), 2;
    const char *name = word[1];
    long n = atol(word[2]);
    cl_platform_id platforms[8];
    cl_uint found = 0;
    cl_device_id device = NULL;
    check(clGetPlatformIDs(8, platforms, &found), "a platform");
    for (cl_uint i = 0; i < found && !device; i++) {
        char called[128] = "";
        clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof called - 1, called, NULL);
        if (!strstr(called, "Portable Computing Language")) continue;
        check(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, NULL), "a device");
    }
    if (!device) return fprintf(stderr, "PoCL is not installed\n"), 2;
    cl_int error;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error), check(error, "a context");
    queue = clCreateCommandQueue(context, device, 0, &error), check(error, "a queue");
    const char *text = text_of(word[3]);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    check(error, "a program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "compiling");
    kernel = clCreateKernel(program, name, &error), check(error, "a kernel");

#define IS(label) (!strcmp(name, label))
    int squared = IS("matmul") || IS("mandelbrot") || IS("softmax") || IS("rms_norm") ||
                  IS("transpose") || IS("stencil");
    long size = squared ? n * n : n;
    long results = IS("reduction") ? n / 4096 : IS("histogram") ? 256 : IS("n_body") ? 3 * n : size;
    float scale = IS("exp_sin") ? 10 : IS("softmax") || IS("rms_norm") ? 5 : 1;
    float *out = zeros(results);
    if (IS("saxpy")) number(0.001f);
    if (IS("triad")) number(0.5f);
    if (IS("histogram")) buffer(bytes(n, 1), n);
    else if (!IS("mandelbrot")) buffer(numbers(size, 1, scale), size * 4);
    if (IS("triad") || IS("matmul") || IS("n_body")) buffer(numbers(size, 2, 1), size * 4);
    if (IS("rms_norm")) buffer(numbers(n, 2, 1), n * 4);
    if (IS("n_body")) buffer(numbers(n, 3, 1), n * 4), buffer(numbers(n, 4, 1), n * 4);
    cl_mem results_buffer = buffer(out, results * 4);
    if (squared || IS("n_body")) count(n);
    if (IS("mandelbrot")) count(256);
    if (IS("histogram")) bins = results_buffer;

    if (IS("saxpy") || IS("triad") || IS("exp_sin")) over(n / 8, 0, 64);
    else if (IS("matmul")) over(n / 32, n / 8, 1);
    else if (IS("mandelbrot")) over(n / 64, n, 1);
    else if (IS("reduction")) over(n / 4096, 0, 1);
    else if (IS("softmax") || IS("rms_norm")) over(n, 0, 1);
    else if (IS("transpose")) over(n / 16, n / 16, 1);
    else if (IS("histogram")) over(n / 65536, 0, 1);
    else if (IS("stencil")) over(n, n, 256);
    else if (IS("n_body")) over(n / 16, 0, 1);
    run();
    check(clEnqueueReadBuffer(queue, results_buffer, CL_TRUE, 0, results * 4, out, 0, NULL, NULL), "reading");
    if (IS("histogram"))
        for (long i = 0; i < results; i++) out[i] = ((cl_uint *)out)[i];
    serve(sum(out, results), run);
    return 0;
}
