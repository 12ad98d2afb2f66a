// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/commands.h"
#include "cli/signals.h"

namespace volferry::cli {

namespace {

void show(Console& console, const BenchArguments& arguments, const bench::Context& context) {
  const std::string last = bench::bottleneck(context.rows);
  if (!arguments.json) {
    console.out_text(bench::table(context.rows));
    console.out(last);
    return;
  }
  for (const bench::Row& row : context.rows) console.out(bench::row_json(row));
  const nlohmann::ordered_json summary = {{"event", "summary"},
                                          {"result", context.stopped() ? "failed" : "ok"},
                                          {"exit_code", context.stop.load()},
                                          {"bottleneck", last}};
  console.out(summary.dump());
}

int run_bench(const BenchArguments& arguments, Console& console) {
  StopFlag stop{0};
  const StopSignals signals(stop);
  base::NullLogger logger;
  bench::Context context = {.duration = arguments.seconds,
                            .directory = arguments.directory,
                            .stop = stop,
                            .logger = logger};
  const auto step = [&](std::string_view name, void (*run)(bench::Context&)) {
    if (context.stopped()) return;
    console.set_status(name);
    run(context);
  };
  step("measuring memory ...", bench::measure_memory_limits);
  step("measuring the disk ...", bench::bench_disk);
  step("measuring hashes and delta ...", bench::bench_hash);
  step("measuring TLS ...", bench::bench_network);
  step("measuring small files ...", bench::bench_files);
  console.clear_status();
  show(console, arguments, context);
  if (context.stopped()) console.err("volferry: error: bench: interrupted; run it again");
  return stop.load();
}

}  // namespace

int bench_command(const CommandArguments& arguments, Console& console) {
  const auto parsed = parse_bench(arguments);
  if (!parsed) return report_failure(parsed.error(), arguments, console);
  if (const auto* help = std::get_if<Help>(&*parsed)) {
    console.out_text(help->text);
    return 0;
  }
  return run_bench(std::get<BenchArguments>(*parsed), console);
}

}  // namespace volferry::cli
