#include "rack/server_update.h"

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

/* A text, or the name of the file that it names in the folder CONTROL_NEXT. NULL without memory. */
static char *next_name(const char *text)
{
	char *name = NULL;

	if (asprintf(&name, CONTROL_NEXT "/%s", text) < 0)
		return NULL;
	if (!*text || *text == '/' || (access(name, F_OK) != 0 && access(text, F_OK) != 0))
		strcpy(name, text);
	return name;
}

/* Whether a text is no file, or one with the same bytes as before. */
static bool same_content(const char *text)
{
	char *name = next_name(text);
	const bool same = name && (strcmp(name, text) == 0 ? *text != '/' : same_files(text, name));

	free(name);
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

/* Make an instance, whose files are those of the folder CONTROL_NEXT. NULL after printing why. */
static struct nf *make_instance(const struct chain *chain, struct chain_spec *spec, unsigned int at)
{
	struct chain_function *function = &spec->functions[at];
	const char *texts[NF_MOST_PARAMETERS];
	char *names[NF_MOST_PARAMETERS] = {NULL};
	struct nf *nf = NULL;
	bool named = true;

	for (unsigned int i = 0; i < function->n_settings; i++) {
		texts[i] = function->settings[i].text;
		names[i] = texts[i] ? next_name(texts[i]) : NULL;
		named &= !texts[i] || names[i];
		function->settings[i].text = names[i];
	}
	if (named)
		nf = chain_make_instance(chain, spec, at);
	else
		fprintf(stderr, "nf-server: no memory for names of files\n");
	for (unsigned int i = 0; i < function->n_settings; i++) {
		function->settings[i].text = texts[i];
		free(names[i]);
	}
	return nf;
}

/* What is prepared; NULL after printing why. */
static struct server_update *read_update(const struct chain *chain, const struct chain_spec *spec)
{
	struct server_update *update = calloc(1, sizeof(*update));
	bool made;

	if (!update) {
		fprintf(stderr, "nf-server: no memory for tables\n");
		return NULL;
	}
	made = chain_file_read(&update->file, CONTROL_NEXT "/" CHAIN_FILE) &&
	       same_chain(spec, &update->file.spec);
	update->file.spec.n_cores = spec->n_cores;
	for (unsigned int i = 0; made && i < spec->n_functions; i++) {
		update->file.spec.functions[i].core = spec->functions[i].core;
		update->file.spec.functions[i].execution = spec->functions[i].execution;
		if (same_function(&spec->functions[i], &update->file.spec.functions[i]))
			continue;
		update->instances[i] = make_instance(chain, &update->file.spec, i);
		made = update->instances[i] != NULL;
	}
	if (made)
		return update;
	server_update_free(update);
	return NULL;
}

static void *prepare(void *argument)
{
	struct server_preparing *preparing = argument;
	bool registered;

	/* a thread begins on the processor of the one that made it, which forwards packets there */
	pthread_setaffinity_np(pthread_self(), sizeof(preparing->processors),
			       &preparing->processors);
	registered = rte_thread_register() == 0;
	preparing->update = read_update(preparing->chain, preparing->spec);
	if (registered)
		rte_thread_unregister();
	atomic_store(&preparing->done, true);
	return NULL;
}

bool server_preparing_begin(struct server_preparing *preparing)
{
	int error;

	preparing->update = NULL;
	atomic_store(&preparing->done, false);
	error = pthread_create(&preparing->thread, NULL, prepare, preparing);
	preparing->running = error == 0;
	if (error)
		fprintf(stderr, "nf-server: no thread to read tables: %s\n", strerror(error));
	return preparing->running;
}

struct server_update *server_preparing_end(struct server_preparing *preparing)
{
	if (!preparing->running)
		return NULL;
	pthread_join(preparing->thread, NULL);
	preparing->running = false;
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
