// SPDX-License-Identifier: Apache-2.0
#include "cli/volume_run.h"

#include "cli/credentials.h"
#include "cli/logger.h"
#include "cli/signals.h"

namespace volferry::cli {

namespace {

// The endpoint with its credentials, if it is one that needs them.
Result<Endpoint> with_credentials(Endpoint endpoint, const KeyArguments& keys) {
  if (auto* tls = std::get_if<TlsEndpoint>(&endpoint)) {
    VF_ASSIGN(tls->credentials, load_credentials(keys));
  }
  return endpoint;
}

}  // namespace

int run_on_volumes(const SyncArguments& arguments, CommandKind kind, VolumeCall call,
                   const CommandArguments& raw, Console& console) {
  const Result<Endpoint> source = with_credentials(arguments.source_endpoint, arguments.keys);
  if (!source) return report_failure(source.error(), raw, console);
  const Result<Endpoint> destination =
      with_credentials(arguments.destination_endpoint, arguments.keys);
  if (!destination) return report_failure(destination.error(), raw, console);

  const Work work = {.kind = kind,
                     .source = arguments.source,
                     .destination = arguments.destination,
                     .remote = is_remote(*source) || is_remote(*destination),
                     .dry_run = arguments.options.dry_run};
  const auto logger = make_logger(console, arguments.output);
  const auto output = make_output(console, arguments.output, work);
  StopFlag stop{0};
  const StopSignals signals(stop);
  output->start();
  const Summary summary = call(*source, *destination, arguments.options, *output, *logger, stop);
  const int code = summary.exit_code();
  output->finish(summary, code);
  return code;
}

}  // namespace volferry::cli
