// The least that turning a request away can take: read it, write an answer that is ready, and nothing else.
// Prints its port; at the end of its input, the seconds of CPU that it used.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, EVENTS = 256, REQUEST = 65536 };

static const char answer[] = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\nretry-after: 1\r\n\r\n{}";

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static int watch(int poll, int what) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = what};
  return epoll_ctl(poll, EPOLL_CTL_ADD, what, &event);
}

static int start_listening(int poll) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listening = socket(AF_INET, SOCK_STREAM, 0);
  if (listening < 0 || bind(listening, (struct sockaddr *)&address, size) != 0 || listen(listening, BACKLOG) != 0 ||
      getsockname(listening, (struct sockaddr *)&address, &size) != 0 || watch(poll, listening) != 0) {
    return -1;
  }
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return listening;
}

static void serve(int connection) {
  static char request[REQUEST];
  if (read(connection, request, sizeof request) <= 0 || write(connection, answer, strlen(answer)) < 0) {
    close(connection);
  }
}

int main(void) {
  struct epoll_event ready[EVENTS];
  struct rusage used;
  int poll = epoll_create1(0);
  int listening = start_listening(poll);
  if (listening < 0 || watch(poll, STDIN_FILENO) != 0) {
    return 1;
  }
  for (int going = 1; going;) {
    int count = epoll_wait(poll, ready, EVENTS, -1);
    for (int at = 0; at < count; at++) {
      int what = ready[at].data.fd;
      if (what == STDIN_FILENO) {
        going = 0;
      } else if (what == listening) {
        watch(poll, accept(listening, NULL, NULL));
      } else {
        serve(what);
      }
    }
  }
  getrusage(RUSAGE_SELF, &used);
  printf("%f\n", seconds(used.ru_utime) + seconds(used.ru_stime));
  return 0;
}
