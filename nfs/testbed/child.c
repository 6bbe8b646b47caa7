#include "testbed/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

#define POLL_MS 5

extern char **environ;

bool program_find(const char *program, char *path, size_t size)
{
	const char *folders = getenv("PATH");

	while (folders && *folders) {
		const size_t n = strcspn(folders, ":");

		snprintf(path, size, "%.*s/%s", (int)n, folders, program);
		if (access(path, X_OK) == 0)
			return true;
		folders += n + (folders[n] == ':');
	}
	return false;
}

static void path_in(char *path, const char *folder, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

static int start(char *const *words, const char *folder, pid_t *child)
{
	static const char *const names[] = {NULL, "stdout", "stderr"};
	posix_spawn_file_actions_t actions;
	char path[PATH_MAX];
	int result = posix_spawn_file_actions_init(&actions);

	if (result == 0)
		result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	for (int i = 1; i <= 2 && result == 0; i++) {
		path_in(path, folder, names[i]);
		result = posix_spawn_file_actions_addopen(&actions, i, path,
							  O_WRONLY | O_CREAT | O_TRUNC, 0600);
	}
	if (result == 0)
		result = posix_spawnp(child, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -result;
}

/* The exit status, or a negative errno if the child had to be killed. */
static int wait_for(pid_t child, const volatile bool *stop, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000l};
	int status;

	while (!*stop && clock_ns() < until_ns) {
		pid_t ended = waitpid(child, &status, WNOHANG);

		if (ended == child)
			return status;
		if (ended < 0 && errno != EINTR)
			return -errno;
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return *stop ? -EINTR : -ETIMEDOUT;
}

static void print_last_line(const char *folder)
{
	char path[PATH_MAX], line[512], last[512] = "";
	FILE *file;

	path_in(path, folder, "stderr");
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		memcpy(last, line, sizeof(last));
	if (file)
		fclose(file);
	fprintf(stderr, "testbed: last line of its stderr: %s\n", last[0] ? last : "(none)");
}

pid_t child_run(char *const *words, const char *folder, const volatile bool *stop,
		uint64_t until_ns)
{
	pid_t child = 0;
	int status = start(words, folder, &child);

	if (status == 0)
		status = wait_for(child, stop, until_ns);
	if (status == 0)
		return child;
	if (status > 0) {
		fprintf(stderr, "testbed: %s ended with status %d\n", words[0], status);
		print_last_line(folder);
		return -ECHILD;
	}
	fprintf(stderr, "testbed: %s: %s\n", words[0], strerror(-status));
	return status;
}

bool child_read_number(const char *folder, const char *word, double *number)
{
	char path[PATH_MAX], line[256];
	const size_t length = strlen(word);
	bool found = false;
	FILE *file;

	path_in(path, folder, "stdout");
	file = fopen(path, "r");
	while (file && !found && fgets(line, sizeof(line), file)) {
		found = strncmp(line, word, length) == 0 && line[length] == ' ';
		if (found)
			*number = strtod(line + length, NULL);
	}
	if (file)
		fclose(file);
	return found;
}
