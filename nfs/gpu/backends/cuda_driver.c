#include "gpu/backends/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>

static struct cuda_driver driver;
static bool is_there;

/* A function of the library, whose name it is. False without it. */
static bool find(void *library, const char *name, void *place)
{
	*(void **)place = dlsym(library, name);
	return *(void **)place != NULL;
}

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;
	int n = 0;

#define CUDA_FIND(name, types) all = all && find(library, #name, &driver.name);
	CUDA_FUNCTIONS(CUDA_FIND)
#undef CUDA_FIND
	is_there = all && driver.cuInit(0) == 0 && driver.cuDeviceGetCount(&n) == 0 && n > 0;
	if (library && !is_there)
		dlclose(library);
}

const struct cuda_driver *cuda_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_driver);
	return is_there ? &driver : NULL;
}
