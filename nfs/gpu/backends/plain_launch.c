/* The kernel that stays as plain C: a thread for each executor. */
#include "gpu/backends/plain.h"
#include "gpu/host/persistent.h"

static void *execute(void *argument)
{
	const struct plain_executor *executor = argument;
	u8 *const *arenas = executor->plain->device;

	plain_place = (struct plain_place){.group = executor->group, .groups = executor->groups};
	gpu_persistent(arenas[GPU_IN], arenas[GPU_OUT], arenas[GPU_STATE], arenas[GPU_CONTROL]);
	return NULL;
}

bool plain_wait(void *device)
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

bool plain_launch(void *device, const struct gpu_launch *launch)
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
