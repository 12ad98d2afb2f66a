// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace volferry::cli {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

SyncArguments sync(const Words& words) {
  auto parsed = parse_sync(words);
  if (!parsed) ADD_FAILURE() << parsed.error().message();
  return parsed ? std::get<SyncArguments>(*parsed) : SyncArguments{};
}

template <typename Arguments>
std::string error(const Parsed<Arguments>& parsed) {
  if (parsed) return "no error";
  EXPECT_EQ(parsed.error().code, Code::kUsage);
  return parsed.error().message();
}

TEST(ParseSync, DefaultsAreThoseOfTheEngine) {
  const SyncArguments arguments = sync({"a", "b"});
  EXPECT_EQ(arguments.source, "a");
  EXPECT_EQ(arguments.destination, "b");
  const SyncOptions& options = arguments.options;
  EXPECT_FALSE(options.delete_extra || options.dry_run || options.checksum || options.inplace ||
               options.verify || options.itemize || options.one_file_system);
  EXPECT_TRUE(options.durable && options.owner && options.perms && options.times &&
              options.xattrs && options.acls && options.hardlinks && options.devices);
  EXPECT_EQ(options.compress, CompressChoice::kAuto);
  EXPECT_EQ(options.bandwidth_limit, 0u);
  EXPECT_EQ(options.memory_bytes, 512u << 20);
  EXPECT_EQ(arguments.output.progress, When::kAuto);
}

TEST(ParseSync, SetsEveryOption) {
  const SyncArguments arguments = sync({"--delete",
                                        "-n",
                                        "-i",
                                        "-c",
                                        "-x",
                                        "--inplace",
                                        "--verify",
                                        "--no-durable",
                                        "--no-owner",
                                        "--no-perms",
                                        "--no-times",
                                        "--no-xattrs",
                                        "--no-acls",
                                        "--no-hardlinks",
                                        "--no-devices",
                                        "--bwlimit",
                                        "50M",
                                        "--compress",
                                        "zstd:7",
                                        "--streams",
                                        "4",
                                        "--threads",
                                        "3",
                                        "--memory",
                                        "1Gi",
                                        "--io",
                                        "threads",
                                        "--direct",
                                        "on",
                                        "--hash",
                                        "sha256",
                                        "--timeout",
                                        "2.5",
                                        "--connect-timeout",
                                        "1",
                                        "--retries",
                                        "0",
                                        "--progress",
                                        "off",
                                        "--json",
                                        "--stats",
                                        "-v",
                                        "src",
                                        "dst"});
  const SyncOptions& options = arguments.options;
  EXPECT_TRUE(options.delete_extra && options.dry_run && options.itemize && options.checksum &&
              options.one_file_system && options.inplace && options.verify);
  EXPECT_FALSE(options.durable || options.owner || options.perms || options.times ||
               options.xattrs || options.acls || options.hardlinks || options.devices);
  EXPECT_EQ(options.bandwidth_limit, 50'000'000u);
  EXPECT_EQ(options.compress, CompressChoice::kZstd);
  EXPECT_EQ(options.compress_level, 7);
  EXPECT_EQ(options.streams, 4u);
  EXPECT_EQ(options.threads, 3u);
  EXPECT_EQ(options.memory_bytes, 1u << 30);
  EXPECT_EQ(options.io, IoChoice::kThreads);
  EXPECT_EQ(options.direct, DirectChoice::kOn);
  EXPECT_EQ(options.hash, HashChoice::kSha256);
  EXPECT_EQ(options.timeout, milliseconds(2500));
  EXPECT_EQ(options.connect_timeout, milliseconds(1000));
  EXPECT_EQ(options.retries, 0u);
  EXPECT_EQ(arguments.output.progress, When::kOff);
  EXPECT_TRUE(arguments.output.json && arguments.output.stats);
  EXPECT_EQ(arguments.output.verbose, 1);
}

TEST(ParseSync, CompressForms) {
  EXPECT_EQ(sync({"--compress", "off", "a", "b"}).options.compress, CompressChoice::kOff);
  EXPECT_EQ(sync({"--compress=zstd", "a", "b"}).options.compress_level, 0);
  EXPECT_EQ(sync({"--compress=zstd:3", "--compress=auto", "a", "b"}).options.compress_level, 0);
  for (const char* text : {"zstd:0", "zstd:20", "zstd:", "zstdx", "lz4", "zstd:-1"})
    EXPECT_THAT(error(parse_sync({"--compress", text, "a", "b"})), HasSubstr("option --compress"));
}

TEST(ParseSync, FiltersKeepTheirOrder) {
  const auto filters = sync({"--exclude", "*.o", "--include=keep/", "a", "--exclude", "+ x", "b",
                             "--include", "- y", "--exclude", "*"})
                           .options.filters;
  std::string order;
  for (const FilterRule& rule : filters) order += (rule.include ? "+" : "-") + rule.pattern + " ";
  EXPECT_EQ(order, "-*.o +keep/ +x -y -* ");
}

TEST(ParseSync, Endpoints) {
  const auto to_ssh = sync({"-e", "ssh -i key", "--remote-command", "/opt/v", "a", "me@h:p"});
  const auto& ssh = std::get<SshEndpoint>(to_ssh.destination_endpoint);
  EXPECT_EQ(ssh.ssh_command, "ssh -i key");
  EXPECT_EQ(ssh.remote_command, "/opt/v");
  const auto from_tls = sync({"--psk-file", "k", "tls://h/x", "b"});
  EXPECT_EQ(std::get<TlsEndpoint>(from_tls.source_endpoint).subpath, "x");
  EXPECT_EQ(from_tls.keys.psk_file, "k");
}

TEST(ParseSync, RefusesWhatMakesNoSense) {
  EXPECT_THAT(error(parse_sync({})), HasSubstr("two endpoints are needed"));
  EXPECT_THAT(error(parse_sync({"a"})), HasSubstr("1 was given"));
  EXPECT_THAT(error(parse_sync({"a", "b", "c"})), HasSubstr("unexpected argument 'c'"));
  EXPECT_THAT(error(parse_sync({"", "b"})), HasSubstr("empty"));
  EXPECT_THAT(error(parse_sync({"h:a", "i:b"})), HasSubstr("both remote"));
  EXPECT_THAT(error(parse_sync({"a", "tls://h"})), HasSubstr("--psk-file"));
  EXPECT_THAT(error(parse_sync({"-q", "-v", "a", "b"})), HasSubstr("-q and -v"));
  EXPECT_THAT(error(parse_sync({"--cert", "c", "a", "b"})), HasSubstr("--cert, --key and --ca"));
  EXPECT_THAT(
      error(parse_sync({"--psk-file", "k", "--cert", "c", "--key", "k", "--ca", "a", "a", "b"})),
      HasSubstr("exclude each other"));
  EXPECT_THAT(error(parse_sync({"--psk-identity", "x", "a", "b"})), HasSubstr("needs --psk-file"));
  EXPECT_THAT(error(parse_sync({"--bwlimit", "fast", "a", "b"})),
              HasSubstr("option --bwlimit: 'fast'"));
  EXPECT_THAT(error(parse_sync({"--memory", "1M", "a", "b"})), HasSubstr("32Mi"));
  EXPECT_THAT(error(parse_sync({"--streams", "0", "a", "b"})), HasSubstr("1 to 64"));
  EXPECT_THAT(error(parse_sync({"--io", "aio", "a", "b"})), HasSubstr("auto, uring, threads"));
  EXPECT_THAT(error(parse_sync({"--connect-timeout", "0", "a", "b"})),
              HasSubstr("--connect-timeout"));
  EXPECT_THAT(error(parse_sync({"--exclude-from", "/nonexistent", "a", "b"})),
              HasSubstr("/nonexistent: No such file"));
  for (const Words& words : {Words{}, Words{"h:a", "i:b"}, Words{"--bogus"}})
    EXPECT_THAT(error(parse_sync(words)), HasSubstr("; see 'volferry sync --help'"));
}

TEST(ParseVerify, TakesTheSubset) {
  auto parsed = parse_verify({"--no-times", "--exclude", "x", "a", "b"});
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(std::get<SyncArguments>(*parsed).options.times);
  for (const char* option : {"--delete", "-n", "-i", "--inplace", "--durable"})
    EXPECT_THAT(error(parse_verify({option, "a", "b"})), HasSubstr("unknown option")) << option;
  EXPECT_THAT(error(parse_verify({"a"})), HasSubstr("see 'volferry verify --help'"));
}

TEST(ParseServe, ListensAndLimits) {
  auto parsed = parse_serve({"--root", "/v", "--psk-file", "k", "--listen", "127.0.0.1:0", "--once",
                             "--read-only", "--bwlimit", "1M", "--no-confine", "--no-durable"});
  ASSERT_TRUE(parsed);
  const auto& serve = std::get<ServeArguments>(*parsed);
  EXPECT_EQ(serve.root, "/v");
  EXPECT_EQ(serve.listen.host, "127.0.0.1");
  EXPECT_EQ(serve.listen.port, 0);
  EXPECT_TRUE(serve.once && serve.read_only);
  EXPECT_FALSE(serve.write_only || serve.stdio || serve.confine || serve.limits.durable);
  EXPECT_EQ(serve.limits.bandwidth_limit, 1'000'000u);
}

TEST(ParseServe, NeedsKeysUnlessStdio) {
  EXPECT_THAT(error(parse_serve({"--root", "/v"})), HasSubstr("volferry keygen"));
  auto parsed = parse_serve({"--stdio", "--root", "x"});
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(std::get<ServeArguments>(*parsed).stdio);
}

TEST(ParseServe, RefusesWhatMakesNoSense) {
  EXPECT_THAT(error(parse_serve({"--psk-file", "k"})), HasSubstr("--root"));
  EXPECT_THAT(error(parse_serve({"--root", "/", "--psk-file", "k", "--read-only", "--write-only"})),
              HasSubstr("exclude each other"));
  EXPECT_THAT(error(parse_serve({"--root", "/", "--stdio", "--listen", ":1"})),
              HasSubstr("--listen"));
  EXPECT_THAT(error(parse_serve({"--root", "/", "--stdio", "--psk-file", "k"})),
              HasSubstr("no keys"));
  EXPECT_THAT(error(parse_serve({"--root", "/", "--stdio", "--json"})), HasSubstr("--json"));
  EXPECT_THAT(error(parse_serve({"--root", "/", "--psk-file", "k", "--listen", "::1"})),
              HasSubstr("IPv6 in brackets"));
  EXPECT_THAT(error(parse_serve({"--root", "/", "x"})), HasSubstr("unexpected argument 'x'"));
}

TEST(ParseOthers, TheirOptions) {
  EXPECT_EQ(std::get<KeygenArguments>(*parse_keygen({"--identity", "a.b", "-o", "f"})).identity,
            "a.b");
  for (const char* name : {"", "a:b", "a b", "#x", "a\nb", "\xff"})
    EXPECT_NE(error(parse_keygen({"--identity", name})), "no error") << name;
  EXPECT_EQ(std::get<BenchArguments>(*parse_bench({"--seconds", "0.2"})).seconds,
            milliseconds(200));
  EXPECT_NE(error(parse_bench({"--seconds", "0"})), "no error");
  EXPECT_TRUE(std::get<VersionArguments>(*parse_version({"--json"})).json);
}

TEST(Help, EveryCommandHasAnExample) {
  const auto text = [](const auto& parsed) { return std::get<Help>(*parsed).text; };
  for (const std::string& help :
       {text(parse_sync({"--help"})), text(parse_verify({"-h"})), text(parse_serve({"-h"})),
        text(parse_keygen({"-h"})), text(parse_bench({"-h"})), text(parse_version({"-h"})),
        main_help()}) {
    EXPECT_THAT(help, HasSubstr("Usage: volferry "));
    EXPECT_THAT(help, HasSubstr("Example"));
  }
}

TEST(UnknownCommand, SuggestsTheNearestOne) {
  EXPECT_THAT(unknown_command("snyc").error().message(), HasSubstr("did you mean sync?"));
  EXPECT_THAT(unknown_command("synk").error().message(), HasSubstr("did you mean sync?"));
  EXPECT_THAT(unknown_command("x\n").error().message(), HasSubstr("'x\\x0a'"));
}

}  // namespace
}  // namespace volferry::cli
