// A kernel for one architecture only, for the test of GPUs that have none:
// nvcc --fatbin -gencode=arch=compute_120a,code=sm_120a -o other.fatbin other.cu
extern "C" __global__ void clock_read(long long *at) { *at = 0; }
