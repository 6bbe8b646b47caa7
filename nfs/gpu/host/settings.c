/* Settings of a worker, and their change at run time. */
#include "gpu/host/worker.h"

#include <stdio.h>

struct gpu_settings gpu_settings_even(u32 batch, u32 order, u64 flush_ns, u32 sms)
{
	struct gpu_settings settings = {.batch = batch, .order = order, .flush_ns = flush_ns};
	const u32 n = batch < sms ? batch : sms;

	for (u32 i = 0; i < n && i < GPU_MOST_SMS; i++)
		settings.minibatches[settings.n_minibatches++] =
			(struct gpu_minibatch){.sm = i, .packets = batch / n + (i < batch % n)};
	return settings;
}

static bool fault(const struct gpu_function *function, const char *what, u32 value)
{
	fprintf(stderr, "%s: %s: %u\n", function->name, what, value);
	return false;
}

static bool check_minibatches(const struct gpu_runtime *runtime,
			      const struct gpu_function *function,
			      const struct gpu_settings *settings)
{
	bool used[GPU_MOST_SMS] = {false}, right = true;
	u64 packets = 0;

	if (settings->n_minibatches > GPU_MOST_SMS)
		return fault(function, "too many minibatches", settings->n_minibatches);
	for (u32 i = 0; i < settings->n_minibatches; i++) {
		const struct gpu_minibatch *minibatch = &settings->minibatches[i];

		packets += minibatch->packets;
		if (minibatch->packets == 0)
			right = fault(function, "a minibatch without packets on SM", minibatch->sm);
		if (minibatch->sm >= runtime->shape.sms)
			right = fault(function, "no such SM", minibatch->sm);
		else if (used[minibatch->sm])
			right = fault(function, "two minibatches on SM", minibatch->sm);
		else
			used[minibatch->sm] = true;
	}
	if (packets != settings->batch)
		right = fault(function, "minibatches do not add up to the batch", settings->batch);
	return right;
}

bool gpu_settings_check(const struct gpu_runtime *runtime, const struct gpu_function *function,
			const struct gpu_settings *settings)
{
	bool right = true;

	if (settings->batch == 0 || settings->batch > function->most_batch)
		right = fault(function, "batches are of 1 packet to the most that was asked for",
			      settings->batch);
	return check_minibatches(runtime, function, settings) && right;
}

bool gpu_set(struct gpu_runtime *runtime, unsigned int number, const struct gpu_settings *settings)
{
	struct gpu_worker *worker = &runtime->workers[number];

	if (!gpu_settings_check(runtime, &worker->function, settings))
		return false;
	pthread_mutex_lock(&worker->lock);
	worker->next = *settings;
	atomic_store_explicit(&worker->changed, true, memory_order_relaxed);
	pthread_mutex_unlock(&worker->lock);
	for (int bus = 0; bus < GPU_BUSES; bus++)
		gate_set_order(&runtime->gates[bus], number, settings->order);
	return true;
}

void gpu_take_settings(struct gpu_worker *worker)
{
	if (!atomic_load_explicit(&worker->changed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&worker->lock);
	worker->settings = worker->next;
	atomic_store_explicit(&worker->changed, false, memory_order_relaxed);
	pthread_mutex_unlock(&worker->lock);
}
