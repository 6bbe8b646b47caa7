/* Runs kernels as plain C: tasks on the calling thread, a kernel that stays on threads of its own. */
#include <pthread.h>

#include "gpu/backends/arenas.h"
#include "gpu/host/persistent.h"
#include "gpu/kernels/process.h"

struct plain {
	struct gpu_sizes sizes;
	u8 *host[GPU_ARENAS], *device[GPU_ARENAS];
	struct plain_executor *executors; /* of the kernel that stays; NULL while there is none */
	u32 n_executors;
};

/* A group of the kernel that stays. */
struct plain_executor {
	pthread_t thread;
	struct plain *plain;
	u32 group, groups;
};

static void close_plain(void *device)
{
	struct plain *plain = device;

	for (int arena = 0; arena < GPU_ARENAS; arena++) {
		if (plain->device[arena] != plain->host[arena])
			free(plain->device[arena]);
		free(plain->host[arena]);
	}
	free(plain);
}

static bool allocate(struct plain *plain)
{
	for (int arena = 0; arena < GPU_ARENAS; arena++) {
		plain->host[arena] = arena_allocate(plain->sizes.bytes[arena]);
		plain->device[arena] = arena == GPU_CONTROL
					       ? plain->host[arena]
					       : arena_allocate(plain->sizes.bytes[arena]);
		if (!plain->host[arena] || !plain->device[arena])
			return false;
	}
	return true;
}

static void *open_plain(const struct gpu_sizes *sizes)
{
	struct plain *plain = calloc(1, sizeof(*plain));

	if (!plain) {
		fprintf(stderr, "gpu: no memory for a device\n");
		return NULL;
	}
	plain->sizes = *sizes;
	if (allocate(plain))
		return plain;
	close_plain(plain);
	return NULL;
}

static bool present(void)
{
	return true;
}

static const char *device_of(const void *device)
{
	(void)device;
	return "plain C on the host";
}

static u8 *host_of(void *device, enum gpu_arena arena)
{
	return ((struct plain *)device)->host[arena];
}

static bool copy_in(void *device, enum gpu_arena arena, size_t at, size_t n)
{
	struct plain *plain = device;

	if (!arena_has(&plain->sizes, arena, at, n))
		return false;
	memcpy(plain->device[arena] + at, plain->host[arena] + at, n);
	return true;
}

static bool copy_out(void *device, size_t at, size_t n)
{
	struct plain *plain = device;

	if (!arena_has(&plain->sizes, GPU_OUT, at, n))
		return false;
	memcpy(plain->host[GPU_OUT] + at, plain->device[GPU_OUT] + at, n);
	return true;
}

static bool launch_once(void *device, const struct gpu_task *task, u32 n_groups)
{
	const struct plain *plain = device;

	for (u32 i = 0; i < n_groups; i++) {
		plain_place = (struct plain_place){.group = i, .groups = n_groups};
		gpu_once(plain->device[GPU_IN], plain->device[GPU_OUT], plain->device[GPU_STATE],
			 *task);
	}
	return true;
}

/* The kernel that stays as plain C: a thread for each executor. */

static void *execute(void *argument)
{
	const struct plain_executor *executor = argument;
	u8 *const *arenas = executor->plain->device;

	plain_place = (struct plain_place){.group = executor->group, .groups = executor->groups};
	gpu_persistent(arenas[GPU_IN], arenas[GPU_OUT], arenas[GPU_STATE], arenas[GPU_CONTROL]);
	return NULL;
}

static bool plain_wait(void *device)
{
	struct plain *plain = device;

	for (u32 i = 0; i < plain->n_executors; i++)
		pthread_join(plain->executors[i].thread, NULL);
	free(plain->executors);
	plain->executors = NULL;
	plain->n_executors = 0;
	return true;
}

/* End the launch, of which some threads are there. */
static void give_up(struct plain *plain)
{
	struct gpu_control *control = (struct gpu_control *)plain->device[GPU_CONTROL];

	shared_store(&control->stop, control->launch);
	plain_wait(plain);
}

/* The kernel that stays: see struct gpu_backend. */
static bool plain_launch(void *device, const struct gpu_launch *launch)
{
	const u32 n = launch->sms * launch->executors_per_sm;
	struct plain *plain = device;

	plain->executors = calloc(n, sizeof(*plain->executors));
	for (u32 i = 0; plain->executors && i < n; i++) {
		struct plain_executor *executor = &plain->executors[i];

		*executor = (struct plain_executor){.plain = plain, .group = i, .groups = n};
		if (pthread_create(&executor->thread, NULL, execute, executor) != 0)
			break;
		plain->n_executors++;
	}
	if (plain->n_executors == n)
		return true;
	fprintf(stderr, "plain: no memory for %u executors\n", n);
	give_up(plain);
	return false;
}

GPU_BACKEND(plain, "kernels as plain C on the host")
