/*
 * What kernels are written in: C that compiles as C11 for the host, as OpenCL C 1.2 and as CUDA.
 *
 * A group is an executor: GPU_LANES threads, or one on the host. Kernels use no float, no
 * recursion, no pointer to a function, no designated initializer, and no static data. Barriers
 * stand where all lanes of a group come: PoCL runs a group's lanes one after another from barrier
 * to barrier, so that a lane other than the first may not wait for anything.
 *
 * Memory that host and device share while a kernel runs (`control` of backends/backend.h) is only
 * accessed by shared_load(), shared_store() and shared_add(), which order what is read and written
 * around them: acquire, release, and both. Who waits for a word calls rest() in between.
 */
#pragma once

#define GPU_LANES 128

#if defined(__OPENCL_VERSION__)

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;

#define KERNEL __kernel
#define DEVICE static inline
#define GLOBAL __global
#define LOCAL __local
#define GROUP_ARRAY(name, n) __local u32 name[n]
#define UNROLL _Pragma("unroll")

#define lane() ((u32)get_local_id(0))
#define lanes() ((u32)get_local_size(0))
#define group() ((u32)get_group_id(0))
#define groups() ((u32)get_num_groups(0))
#define meet() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

DEVICE u32 shared_load(GLOBAL u32 *word)
{
	const u32 value = (u32)atomic_add((volatile GLOBAL uint *)word, 0u);

	mem_fence(CLK_GLOBAL_MEM_FENCE);
	return value;
}

DEVICE void shared_store(GLOBAL u32 *word, u32 value)
{
	mem_fence(CLK_GLOBAL_MEM_FENCE);
	atomic_xchg((volatile GLOBAL uint *)word, value);
}

DEVICE u32 shared_add(GLOBAL u32 *word, u32 value)
{
	u32 before;

	mem_fence(CLK_GLOBAL_MEM_FENCE);
	before = (u32)atomic_add((volatile GLOBAL uint *)word, value);
	mem_fence(CLK_GLOBAL_MEM_FENCE);
	return before;
}

DEVICE void rest(u32 rounds)
{
#if defined(GPU_IS_HOST) && defined(__x86_64__)
	/* sched_yield() of Linux: PoCL links kernels without the C library */
	if (rounds > 16)
		__asm__ volatile("syscall" : : "a"(24L) : "rcx", "r11", "memory");
#endif
	(void)rounds;
}

#elif defined(__CUDACC__)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define LOCAL
#define GROUP_ARRAY(name, n) __shared__ u32 name[n]
#define UNROLL _Pragma("unroll")

#define lane() (threadIdx.x)
#define lanes() (blockDim.x)
#define group() (blockIdx.x)
#define groups() (gridDim.x)
#define meet() __syncthreads()

DEVICE u32 shared_load(u32 *word)
{
	const u32 value = *(volatile u32 *)word;

	__threadfence_system();
	return value;
}

DEVICE void shared_store(u32 *word, u32 value)
{
	__threadfence_system();
	*(volatile u32 *)word = value;
}

DEVICE u32 shared_add(u32 *word, u32 value)
{
	u32 before;

	__threadfence_system();
	before = atomicAdd_system(word, value);
	__threadfence_system();
	return before;
}

DEVICE void rest(u32 rounds)
{
	if (rounds > 16)
		__nanosleep(100);
}

#else

#include <sched.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define KERNEL static inline
#define DEVICE static inline
#define GLOBAL
#define LOCAL
#define GROUP_ARRAY(name, n) u32 name[n]
#define UNROLL

/* Of the calling thread, which is a group of one lane; set by its backend. */
struct plain_place {
	u32 group, groups;
};
extern _Thread_local struct plain_place plain_place;

#define lane() 0u
#define lanes() 1u
#define group() (plain_place.group)
#define groups() (plain_place.groups)
#define meet() ((void)0)

DEVICE u32 shared_load(u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

DEVICE void shared_store(u32 *word, u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

DEVICE u32 shared_add(u32 *word, u32 value)
{
	return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

DEVICE void rest(u32 rounds)
{
	if (rounds > 16)
		sched_yield();
}

#endif

/* Of two and of four bytes in network byte order, at an address that need not be aligned. */
DEVICE u32 bytes16(GLOBAL const u8 *bytes)
{
	return (u32)bytes[0] << 8 | bytes[1];
}

DEVICE u32 bytes32(GLOBAL const u8 *bytes)
{
	return bytes16(bytes) << 16 | bytes16(bytes + 2);
}

DEVICE u32 swapped32(u32 word)
{
	return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
}
