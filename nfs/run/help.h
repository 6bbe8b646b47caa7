/* What nf-run --help prints. */
#ifndef NFS_RUN_HELP_H
#define NFS_RUN_HELP_H

static const char help[] =
	"Usage: nf-run --nf NAME [--set KEY=VALUE ...] --in CAPTURE [--out CAPTURE] [...]\n"
	"       nf-run --chain FILE --in CAPTURE [--out CAPTURE] [...]\n"
	"       nf-run --list [--nf NAME]\n"
	"\n"
	"Gives packets to a network function, or a chain of them, and writes what comes out.\n"
	"Counters of each function are printed as one line of JSON.\n"
	"\n"
	"  --nf NAME         the network function\n"
	"  --set KEY=VALUE   a parameter of it; may be repeated\n"
	"  --chain FILE      a chain: functions, edges, cores (see the documentation)\n"
	"  --in END          packets from inside\n"
	"  --outside END     packets from outside, merged with the others by their time\n"
	"  --out END         packets that leave at the outside\n"
	"  --back END        packets that leave at the inside: replies and errors\n"
	"  --each            print the fate of every packet first, one line of JSON each;\n"
	"                    packets then pass one by one\n"
	"  --count N         end after N packets\n"
	"  --seconds S       end after S seconds\n"
	"  --memory-mb N     memory for packets and tables (2048)\n"
	"  --backend NAME    what runs the function: c (the default), or its kernel as plain C\n"
	"                    (plain), by OpenCL (opencl), by CUDA (cuda)\n"
	"  --batch N         packets that a kernel gets at once, at most 1024 (256)\n"
	"  --flush-us T      time after which a batch is closed before it is full (1000)\n"
	"  --executors N     groups of 128 threads that run the kernel, at most 64 (1)\n"
	"  --list            the network functions, or parameters and counters of one\n"
	"  --help            this text\n"
	"\n"
	"An END is a capture file (pcap; \"-\" is stdin or stdout), af_packet:INTERFACE, or ring:\n"
	"packets are generated in memory (ring:FLOWS,SIZE), and freed where they leave. The clock\n"
	"of functions is the time of captured packets, and the real one otherwise.\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted; what was done is kept.\n";

#endif
