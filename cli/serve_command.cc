// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "cli/commands.h"
#include "cli/credentials.h"
#include "cli/logger.h"
#include "cli/output.h"
#include "cli/service.h"
#include "cli/signals.h"

#include "engine/sync.h"

namespace volferry::cli {

namespace {

ServeOptions serve_options(const ServeArguments& arguments) {
  ServeOptions options;
  options.root = arguments.root;
  options.allow_push = !arguments.read_only;
  options.allow_pull = !arguments.write_only;
  options.once = arguments.once;
  options.confine = arguments.confine;
  options.limits = arguments.limits;
  return options;
}

Result<Service> make_service(const ServeArguments& arguments, base::Logger& logger) {
  VF_ASSIGN(transport::ServerOptions options, with_server_keys({}, arguments.keys));
  options.listen_host = arguments.listen.host;
  options.port = arguments.listen.port;
  // A client of a server that serves nothing would learn it too late.
  if (::access(arguments.root.c_str(), F_OK) != 0) {
    return fail_with(Code::kUsage, "no such file or directory: " + arguments.root +
                                       "; make it first, or name another --root");
  }
  return start_service(std::move(options), arguments.limits, logger);
}

int serve_tls(const ServeArguments& arguments, const CommandArguments& raw, Console& console) {
  const auto logger = make_logger(console, arguments.output);
  const auto service = make_service(arguments, *logger);
  if (!service) return report_failure(service.error(), raw, console);

  StopFlag stop{0};
  const StopSignals signals(stop);
  const auto output =
      make_output(console, arguments.output,
                  {.kind = CommandKind::kServe, .source = arguments.root, .remote = true});
  output->start();
  output->listening(service->server->address());
  Summary last;
  const int code =
      run_serve(*service->server, serve_options(arguments), *output, *logger, stop, &last);
  // Of many sessions none is the outcome; each was logged as it ended.
  output->finish(arguments.once ? last : Summary{}, code);
  return code;
}

// A descriptor of its own for the protocol, in place of which the standard one leads to /dev/null:
// nothing that is printed by mistake can get into the stream.
base::UniqueFd take_standard(int fd) {
  base::UniqueFd own(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  const base::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) dup2(null.get(), fd);
  return own;
}

int serve_stdio(const ServeArguments& arguments, Console& console) {
  const auto logger = make_logger(console, arguments.output);
  base::UniqueFd in = take_standard(STDIN_FILENO);
  base::UniqueFd out = take_standard(STDOUT_FILENO);
  StopFlag stop{0};
  const StopSignals signals(stop);
  // The client reports what happened; this end's standard error reaches the same terminal, and
  // saying it twice would not help.
  Observer silent;
  return run_serve_stdio(std::move(in), std::move(out), serve_options(arguments), silent, *logger,
                         stop);
}

}  // namespace

int serve_command(const CommandArguments& arguments, Console& console) {
  auto parsed = parse_serve(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed)) {
    console.out_text(help->text);
    return 0;
  }
  const auto& serve = std::get<ServeArguments>(*parsed);
  return serve.stdio ? serve_stdio(serve, console) : serve_tls(serve, arguments, console);
}

}  // namespace volferry::cli
