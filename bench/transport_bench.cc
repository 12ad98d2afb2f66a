// SPDX-License-Identifier: Apache-2.0
// Frame codec, compression, and channels over a socket pair and over TLS on loopback.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/check.h"
#include "engine/transport/connect.h"
#include "engine/transport/wire/compression.h"
#include "engine/transport/wire/frame.h"

namespace volferry::transport {
namespace {

constexpr std::size_t kMiB = 1 << 20;

wire::DirList sample_list(std::size_t entries) {
  wire::DirList list;
  for (std::size_t i = 0; i < entries; ++i) {
    wire::Entry entry;
    entry.name = "file-" + std::to_string(100000 + i) + ".txt";
    entry.meta.mode = 0644;
    entry.meta.uid = 1000;
    entry.meta.gid = 1000;
    entry.meta.size = i * 977;
    entry.meta.mtime_s = 1'700'000'000 + static_cast<std::int64_t>(i);
    entry.meta.mtime_ns = 123'456'789;
    list.entries.push_back(std::move(entry));
  }
  return list;
}

void encode_dir_list(benchmark::State& state) {
  const wire::DirList list = sample_list(1000);
  for (auto _ : state) benchmark::DoNotOptimize(wire::encode(list));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 1000);
}
BENCHMARK(encode_dir_list);

void decode_dir_list(benchmark::State& state) {
  const std::vector<std::uint8_t> head = wire::encode(sample_list(1000));
  for (auto _ : state) {
    wire::DirList list;
    benchmark::DoNotOptimize(wire::decode(head, list));
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 1000);
}
BENCHMARK(decode_dir_list);

void frame_checksum(benchmark::State& state) {
  const std::vector<std::uint8_t> body(kMiB, 7);
  for (auto _ : state) benchmark::DoNotOptimize(wire::frame_checksum({}, body));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * body.size()));
}
BENCHMARK(frame_checksum);

std::vector<std::uint8_t> log_text(std::size_t size) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < size) {
    text += "2026-01-02T03:04:" + std::to_string(random() % 60) +
            " INFO request id=" + std::to_string(random()) +
            " path=/api/v1/volumes status=200 ms=" + std::to_string(random() % 1000) + "\n";
  }
  return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size)};
}

std::vector<std::uint8_t> random_bytes(std::size_t size) {
  std::mt19937_64 random(2);
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

void compress(benchmark::State& state, const std::vector<std::uint8_t>& raw) {
  wire::Compressor compressor;
  std::size_t packed = raw.size();
  for (auto _ : state) {
    const base::Buffer out = compressor.compress(raw, static_cast<int>(state.range(0)));
    if (!out.empty()) packed = out.size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * raw.size()));
  state.counters["ratio"] = static_cast<double>(raw.size()) / static_cast<double>(packed);
}
void compress_text(benchmark::State& state) { compress(state, log_text(kMiB)); }
void compress_random(benchmark::State& state) { compress(state, random_bytes(kMiB)); }
BENCHMARK(compress_text)->Arg(-5)->Arg(1)->Arg(3)->Arg(9);
BENCHMARK(compress_random)->Arg(-5)->Arg(1)->Arg(3)->Arg(9);

void decompress_text(benchmark::State& state) {
  wire::Compressor compressor;
  const std::vector<std::uint8_t> raw = log_text(kMiB);
  const base::Buffer packed = compressor.compress(raw, 1);
  std::vector<std::uint8_t> out(raw.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(compressor.decompress(packed.bytes(), out).has_value());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * raw.size()));
}
BENCHMARK(decompress_text);

// Takes frames, gives their credit back, and lets the benchmark wait for a count.
class Sink : public ChannelHandler {
 public:
  void use(Channel& channel) { channel_ = &channel; }
  void on_frame(wire::Frame frame) override {
    channel_->consumed(wire::frame_class(frame.type), frame.charge());
    const std::lock_guard lock(mutex_);
    ++count_;
    if (count_ >= target_) reached_.notify_one();
  }
  void on_closed(Status /*reason*/) override {}
  void wait(std::uint64_t target) {
    std::unique_lock lock(mutex_);
    target_ = target;
    reached_.wait(lock, [&] { return count_ >= target_; });
  }

 private:
  Channel* channel_ = nullptr;
  std::mutex mutex_;
  std::condition_variable reached_;
  std::uint64_t count_ = 0;
  std::uint64_t target_ = 0;
};

struct Ends {
  std::unique_ptr<Channel> near;
  std::unique_ptr<Channel> far;
};

// One iteration sends `frames` data frames of `body` bytes and waits until the last has arrived.
void pump(benchmark::State& state, Ends ends, base::BufferPool& pool, std::size_t body) {
  Sink near;
  Sink far;
  near.use(*ends.near);
  far.use(*ends.far);
  ends.near->start(near);
  ends.far->start(far);
  const std::size_t frames = body >= kMiB ? 256 : 20'000;
  std::uint64_t total = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < frames; ++i) {
      base::Buffer buffer =
          body > wire::kHeapBodyBytes ? *pool.acquire() : base::Buffer::heap(body);
      buffer.set_size(body);
      wire::RangeData data;
      data.raw_bytes = static_cast<std::uint32_t>(body);
      data.ops = {{wire::OpKind::kLiteral, static_cast<std::uint32_t>(body), 0}};
      VF_CHECK(ends.near->send(wire::make_frame(data, std::move(buffer))).has_value(), "send");
    }
    total += frames;
    far.wait(total);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(total * body));
  state.SetItemsProcessed(static_cast<std::int64_t>(total));
  std::thread other([&] { (void)ends.far->finish(std::chrono::seconds(10)); });
  (void)ends.near->finish(std::chrono::seconds(10));
  other.join();
  ends.near.reset();
  ends.far.reset();
}

std::unique_ptr<base::BufferPool> make_pool() { return *base::BufferPool::create(80, kMiB); }

ChannelOptions options_with(base::BufferPool& pool, unsigned streams) {
  ChannelOptions options;
  options.receive_pool = &pool;
  options.streams = streams;
  options.data_credit = 32u << 20;
  return options;
}

void tls_loopback(benchmark::State& state) {
  const auto send_pool = make_pool();
  const auto receive_pool = make_pool();
  const auto streams = static_cast<unsigned>(state.range(0));
  ServerOptions server_options;
  server_options.listen_host = "127.0.0.1";
  server_options.port = 0;
  server_options.psk = {{"bench", std::vector<std::uint8_t>(32, 7)}};
  server_options.channel = options_with(*receive_pool, streams);
  const auto server = *Server::create(server_options);
  const std::string address = server->address();
  TlsCredentials credentials;
  credentials.psk_identity = "bench";
  credentials.psk.assign(32, 7);
  const std::atomic<bool> cancel{false};
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  Ends ends;
  ends.near =
      *connect_tls({"127.0.0.1", port}, credentials, options_with(*send_pool, streams), cancel);
  ends.far = *server->accept();
  pump(state, std::move(ends), *send_pool, static_cast<std::size_t>(state.range(1)));
}
BENCHMARK(tls_loopback)
    ->ArgNames({"streams", "body"})
    ->Args({1, kMiB})
    ->Args({2, kMiB})
    ->Args({1, 4096})
    ->Args({1, 0})
    ->UseRealTime()
    ->MeasureProcessCPUTime();

void socketpair_channel(benchmark::State& state) {
  const auto send_pool = make_pool();
  const auto receive_pool = make_pool();
  int fds[2];
  VF_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
  Ends ends;
  std::thread answering([&] {
    base::UniqueFd out(::fcntl(fds[1], F_DUPFD_CLOEXEC, 0));
    ends.far =
        *stdio_server(base::UniqueFd(fds[1]), std::move(out), options_with(*receive_pool, 1));
  });
  base::UniqueFd out(::fcntl(fds[0], F_DUPFD_CLOEXEC, 0));
  ends.near = *stdio_client(base::UniqueFd(fds[0]), std::move(out), options_with(*send_pool, 1));
  answering.join();
  pump(state, std::move(ends), *send_pool, static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(socketpair_channel)
    ->ArgName("body")
    ->Arg(kMiB)
    ->Arg(4096)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace volferry::transport
