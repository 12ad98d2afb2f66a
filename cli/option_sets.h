// SPDX-License-Identifier: Apache-2.0
// Options that several commands share, declared once.
#pragma once

#include "cli/arguments.h"
#include "cli/command_line.h"

namespace volferry::cli {

// Which items take part: patterns, `--one-file-system`.
void add_selection(CommandLine& line, SyncOptions& options);
// Which attributes count: `--no-owner` and its like.
void add_attributes(CommandLine& line, SyncOptions& options);
// Parallelism, memory, I/O path, bandwidth.
void add_limits(CommandLine& line, SyncOptions& options);
void add_hash(CommandLine& line, SyncOptions& options);
void add_compress(CommandLine& line, SyncOptions& options);
void add_timeout(CommandLine& line, SyncOptions& options);
void add_connection(CommandLine& line, SyncOptions& options);
void add_keys(CommandLine& line, KeyArguments& keys);
void add_psk_identity(CommandLine& line, KeyArguments& keys);
void add_output(CommandLine& line, OutputArguments& output);
void add_progress(CommandLine& line, OutputArguments& output);

// The values of single options, for whoever reads them from elsewhere. `auto`, `off`, `zstd`,
// `zstd:LEVEL`:
Status set_compress(SyncOptions& options, std::string_view text);
// The targets outlive the converters.
struct ResourceConverters {
  CommandLine::Convert streams, threads, memory, io, direct;
};
ResourceConverters resource_converters(SyncOptions& options);

// Contradictions within a set; kUsage without the pointer to the help.
Status check_keys(const KeyArguments& keys);
Status check_output(const OutputArguments& output);

}  // namespace volferry::cli
