//go:build cuda

package driver

// remedies say what to do about the driver's result codes, whose numbers are
// those of cuda.h. Codes that only a bug can cause have a hint where to look.
var remedies = map[int]string{
	2:   "free memory on the GPU (nvidia-smi names its processes), or ask for less",
	46:  "the GPU is in use by another process in exclusive mode, or was lost: see nvidia-smi",
	100: "no GPU is visible: check CUDA_VISIBLE_DEVICES and, in a container, --gpus all",
	200: "a kernel image is damaged: build the program again",
	209: "this program has no kernels for this GPU: it needs compute capability 9.0 or newer",
	214: "the GPU's memory has an error that cannot be corrected: see nvidia-smi -q -d ECC, reset the GPU or leave it " +
		"out with CUDA_VISIBLE_DEVICES",
	218: "the driver cannot compile the kernels for this GPU: install a newer driver",
	220: "a link between GPUs failed: see nvidia-smi nvlink -e, and leave the GPU out with CUDA_VISIBLE_DEVICES",
	222: "the driver is older than the kernels: install one for CUDA 13, or a GPU of compute capability 9.0, 10.0 or " +
		"12.0",
	223: "the driver lacks its compiler: install libnvidia-ptxjitcompiler.so.1 of its version",
	700: kernelBug, 714: kernelBug, 715: kernelBug, 716: kernelBug, 717: kernelBug, 718: kernelBug, 719: kernelBug,
	702: "the driver ended a kernel that ran too long: use a GPU without a display",
	721: "the GPU stopped this program's work to contain an error: see dmesg for the Xid, and run again",
	802: "the GPUs' fabric is not ready: is nvidia-fabricmanager running?",
	803: "the loaded driver and libcuda.so.1 differ in version: install the library of the driver's version",
	804: "libcuda.so.1 is of a compatibility package that this GPU does not support: use the driver's own",
	999: "the GPU may be lost: see dmesg for an Xid, and nvidia-smi",
}

const kernelBug = "a kernel is at fault: please report it with the command and the step; compute-sanitizer names " +
	"the kernel"
