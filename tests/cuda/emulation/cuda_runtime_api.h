/* cuda_runtime_api.h - stands in for CUDA's header of that name: the calls that kernels/cuda/
 * makes, on the memory of the host. Numbers of errors are CUDA's.
 *
 * What is queued is done when somebody waits for it and not before, so that whoever forgets to wait
 * sees it. Any thread may call; one at a time is in a call.
 */
#ifndef TESTS_CUDA_EMULATION_API_H
#define TESTS_CUDA_EMULATION_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDART_VERSION = 13000 };

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorDeviceUninitialized = 201,
    cudaErrorECCUncorrectable = 214,
    cudaErrorNvlinkUncorrectable = 220,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalState = 401,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchTimeout = 702,
    cudaErrorContextIsDestroyed = 709,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719,
    cudaErrorSystemNotReady = 802,
    cudaErrorMpsConnectionFailed = 805,
    cudaErrorMpsRpcFailure = 806,
    cudaErrorMpsServerNotReady = 807,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureIsolation = 905,
    cudaErrorCapturedEvent = 907,
    cudaErrorExternalDevice = 911,
    cudaErrorUnknown = 999,
} cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
};
enum {
    cudaStreamNonBlocking = 1,
    cudaEventDisableTiming = 2,
    cudaEventRecordDefault = 0,
    cudaEventRecordExternal = 1,
    cudaEventWaitDefault = 0,
    cudaEventWaitExternal = 1,
    cudaHostAllocDefault = 0,
    cudaMemAttachGlobal = 1,
    cudaHostRegisterDefault = 0,
    cudaHostRegisterReadOnly = 8,
};

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;
typedef struct emulated_graph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor;
    int pciBusID, pciDeviceID, pciDomainID;
};

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int index);
cudaError_t cudaSetDevice(int index);
const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaGetLastError(void);

cudaError_t cudaMalloc(void **ret, size_t bytes);
cudaError_t cudaMallocManaged(void **ret, size_t bytes, unsigned flags);
cudaError_t cudaFree(void *);
cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaHostRegister(void *, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_all);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind,
                            cudaStream_t);
cudaError_t cudaMemsetAsync(void *, int value, size_t bytes, cudaStream_t);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned flags);

cudaError_t cudaStreamBeginCapture(cudaStream_t, enum cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *ret);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphDestroy(cudaGraph_t);

#ifdef __cplusplus
}
#endif

#endif
