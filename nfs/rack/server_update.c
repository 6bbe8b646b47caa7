#include "rack/server_update.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "rack/control.h"

#define CHAIN_FILE "server.chain"

/* Whether two files have the same bytes; false if one cannot be read. */
static bool same_files(const char *path, const char *other_path)
{
	FILE *file = fopen(path, "r"), *other = fopen(other_path, "r");
	bool same = file && other;

	while (same) {
		const int byte = getc(file);

		same = byte == getc(other);
		if (byte == EOF)
			break;
	}
	if (file)
		fclose(file);
	if (other)
		fclose(other);
	return same;
}

/* Whether a text is no file, or one with the same bytes as before. */
static bool same_content(const char *text)
{
	char *next = NULL;
	bool same;

	if (!*text || access(text, R_OK) != 0)
		return true;
	if (asprintf(&next, CONTROL_NEXT "/%s", text) < 0)
		return false;
	same = same_files(text, next);
	free(next);
	return same;
}

static bool same_function(const struct chain_function *function, const struct chain_function *other)
{
	bool same = function->n_settings == other->n_settings;

	for (unsigned int i = 0; same && i < function->n_settings; i++) {
		const struct nf_setting *a = &function->settings[i], *b = &other->settings[i];

		same = strcmp(a->name, b->name) == 0 && !a->text == !b->text;
		same = same && (a->text ? strcmp(a->text, b->text) == 0 && same_content(a->text)
					: a->value == b->value);
	}
	return same;
}

/* Whether a chain has the same functions and edges. */
static bool same_chain(const struct chain_spec *spec, const struct chain_spec *other)
{
	bool same = spec->n_functions == other->n_functions && spec->n_edges == other->n_edges;

	for (unsigned int i = 0; same && i < spec->n_functions; i++)
		same = strcmp(spec->functions[i].name, other->functions[i].name) == 0 &&
		       spec->functions[i].kind == other->functions[i].kind;
	for (unsigned int i = 0; same && i < spec->n_edges; i++) {
		const struct chain_edge *a = &spec->edges[i], *b = &other->edges[i];

		same = a->from == b->from && a->to == b->to && a->gate == b->gate &&
		       a->service.path == b->service.path && a->service.index == b->service.index;
	}
	if (!same)
		fprintf(stderr, "%s: has other functions or edges than before\n", CHAIN_FILE);
	return same;
}

/* Make the instances; their files are read where they lie. */
static bool make_instances(struct server_update *update, const bool *differs,
			   const struct chain *chain)
{
	bool made = chdir(CONTROL_NEXT) == 0;

	if (!made)
		return false;
	for (unsigned int i = 0; i < update->file.spec.n_functions; i++) {
		if (!differs[i])
			continue;
		update->instances[i] = chain_make_instance(chain, &update->file.spec, i);
		made &= update->instances[i] != NULL;
	}
	return chdir("..") == 0 && made;
}

struct server_update *server_update_prepare(const struct chain *chain,
					    const struct chain_spec *spec)
{
	struct server_update *update = calloc(1, sizeof(*update));
	bool differs[CHAIN_MOST_FUNCTIONS];

	if (!update)
		return NULL;
	if (chain_file_read(&update->file, CONTROL_NEXT "/" CHAIN_FILE) &&
	    same_chain(spec, &update->file.spec)) {
		for (unsigned int i = 0; i < spec->n_functions; i++) {
			differs[i] = !same_function(&spec->functions[i],
						    &update->file.spec.functions[i]);
			update->file.spec.functions[i].core = spec->functions[i].core;
			update->file.spec.functions[i].execution = spec->functions[i].execution;
		}
		update->file.spec.n_cores = spec->n_cores;
		if (make_instances(update, differs, chain))
			return update;
	}
	server_update_free(update);
	return NULL;
}

static void *prepare(void *argument)
{
	struct server_preparing *preparing = argument;
	const bool registered = rte_thread_register() == 0;

	/* from here on, the folder that this thread goes to is its own */
	if (unshare(CLONE_FS) == 0)
		preparing->update = server_update_prepare(preparing->chain, preparing->spec);
	if (registered)
		rte_thread_unregister();
	atomic_store(&preparing->done, true);
	return NULL;
}

bool server_preparing_begin(struct server_preparing *preparing)
{
	preparing->update = NULL;
	atomic_store(&preparing->done, false);
	preparing->on = pthread_create(&preparing->thread, NULL, prepare, preparing) == 0;
	if (!preparing->on)
		fprintf(stderr, "nf-server: no thread to read tables\n");
	return preparing->on;
}

struct server_update *server_preparing_end(struct server_preparing *preparing)
{
	if (!preparing->on)
		return NULL;
	pthread_join(preparing->thread, NULL);
	preparing->on = false;
	return preparing->update;
}

void server_update_free(struct server_update *update)
{
	if (!update)
		return;
	for (unsigned int i = 0; i < CHAIN_MOST_FUNCTIONS; i++)
		nf_destroy(update->instances[i]);
	chain_file_free(&update->file);
	free(update);
}

void server_update_apply(struct server_update *update, struct chain *chain,
			 struct chain_file *file)
{
	const struct chain_file before = *file;

	for (unsigned int i = 0; i < CHAIN_MOST_FUNCTIONS; i++) {
		if (update->instances[i])
			chain_exchange(chain, i, update->instances[i]);
		update->instances[i] = NULL;
	}
	*file = update->file;
	update->file = before;
	server_update_free(update);
}
