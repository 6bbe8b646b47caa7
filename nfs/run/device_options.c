/* Refuses options of devices that this build, or a function, has not. */
#include <stdio.h>

#include "gpu/backends/backend.h"
#include "gpu/state/state.h"
#include "run/device.h"

static void hint_engines(void)
{
	fputs("hint: one of c", stderr);
	for (const struct gpu_backend *at = gpu_backend_first(); at; at = at->next)
		fprintf(stderr, " %s", at->name);
	fputc('\n', stderr);
}

static void hint_kernels(void)
{
	fputs("hint: one of", stderr);
	for (enum gpu_nf nf = 0; nf < GPU_NFS; nf++)
		fprintf(stderr, " %s", gpu_nf_name(nf));
	fputs(", or --backend c\n", stderr);
}

unsigned int device_options_check(struct device_options *options, const char *nf, bool tuned)
{
	unsigned int faults = 0;

	if (options->backend && strcmp(options->backend, "c") == 0)
		options->backend = NULL;
	if (!options->backend && tuned) {
		fprintf(stderr, "nf-run: --batch, --flush-us and --executors go with a --backend "
				"other than c\n");
		faults++;
	}
	if (options->backend && !gpu_backend_find(options->backend)) {
		fprintf(stderr, "nf-run: --backend: %s: not built\n", options->backend);
		hint_engines();
		faults++;
	}
	if (options->backend && nf && nf_find(nf) && gpu_nf_of(nf) == GPU_NFS) {
		fprintf(stderr, "nf-run: --backend: %s: %s has no kernel\n", options->backend, nf);
		hint_kernels();
		faults++;
	}
	return faults;
}
