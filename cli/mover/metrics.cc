// SPDX-License-Identifier: Apache-2.0
#include "cli/mover/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace volferry::cli::mover {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct Value {
  std::string kind;  // empty: no such label
  double value = 0;
};

MetricFamily family(std::string name, std::string help, MetricType type, Role role,
                    const std::vector<Value>& values) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  for (const Value& each : values) {
    ClientMetric metric;
    metric.label.push_back({"role", std::string(role_name(role))});
    if (!each.kind.empty()) metric.label.push_back({"kind", each.kind});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = each.value;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// Of the running pass; 0 while the total is unknown.
double progress_ratio(const ProgressSnapshot& now) {
  const auto share = [](std::uint64_t done, std::uint64_t total) {
    return std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  };
  if (!now.total_known) return 0;
  if (now.bytes_total > 0) return share(now.bytes_done, now.bytes_total);
  return now.files_total > 0 ? share(now.files_done, now.files_total) : 1;
}

double number(std::uint64_t value) { return static_cast<double>(value); }

}  // namespace

std::string metrics_text(Role role, const LiveState::Totals& totals, bool healthy) {
  const ProgressSnapshot& now = totals.now;
  const std::vector<MetricFamily> families = {
      family("volferry_mover_bytes_total", "Bytes by how they came over, all sessions together.",
             MetricType::Counter, role,
             {{"literal", number(totals.literal_bytes)},
              {"matched", number(totals.matched_bytes)},
              {"zero", number(totals.zero_bytes)},
              {"wire_sent", number(totals.wire_sent)},
              {"wire_received", number(totals.wire_received)}}),
      family("volferry_mover_files_total", "Files of the running pass; starts anew with each.",
             MetricType::Counter, role,
             {{"listed", number(now.files_total)}, {"done", number(now.files_done)}}),
      family("volferry_mover_sessions_total", "Sessions with a peer that began.",
             MetricType::Counter, role, {{"", number(totals.sessions)}}),
      family("volferry_mover_progress_ratio",
             "Share of the running pass that is done; 0 until the source has been listed.",
             MetricType::Gauge, role, {{"", progress_ratio(now)}}),
      family("volferry_mover_up", "1 while the mover gets on or waits for a peer, 0 if stuck.",
             MetricType::Gauge, role, {{"", healthy ? 1.0 : 0.0}}),
  };
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace volferry::cli::mover
