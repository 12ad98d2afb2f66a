// SPDX-License-Identifier: Apache-2.0
#include "engine/session/targets.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/buffer.h"
#include "engine/delta/geometry.h"
#include "engine/delta/zero.h"
#include "engine/io/file.h"
#include "engine/session/place.h"
#include "engine/session/sizes.h"
#include "engine/session/temp_name.h"

namespace volferry::session {

namespace {

// Mode of a temporary file. The final one saves a chmod(2), but is right from the start only where
// it allows no more to whoever owns the temporary, and its group, than to everybody: until the file
// is done its owner, group and ACL are not yet those it will have. It must not let others write
// either, and must let a later run of ours open it again.
mode_t first_mode(const wire::EntryMeta& want, bool perms) {
  const unsigned owner = want.mode >> 6 & 7;
  const unsigned group = want.mode >> 3 & 7;
  const unsigned other = want.mode & 7;
  const bool plain = perms && want.mode <= 0777 && want.xattrs.empty();
  const bool open_to_all_alike = group == other && (owner & other) == other;
  const bool ours = (owner & 6) == 6 && (other & 2) == 0;
  return plain && open_to_all_alike && ours ? want.mode : 0600;
}

}  // namespace

Result<base::UniqueFd> Targets::open_basis(const FileJob& job) {
  if (!job.old) return base::UniqueFd();
  VF_ASSIGN(const io::DirFd fd, parts_.tree.open(job.dir->node));
  VF_ASSIGN(base::UniqueFd file, io::open_at(fd->get(), job.name, O_RDONLY | O_NONBLOCK));
  if (reread_) (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  return file;
}

base::UniqueFd Targets::open_interrupted(const FileJob& job) {
  if (!job.resume || in_place(job)) return {};
  auto dir = parts_.tree.open(job.dir->node);
  if (!dir) return {};
  auto file = io::open_at((*dir)->get(), temp_name(job.name), O_RDWR | O_NONBLOCK);
  if (!file) return {};
  auto meta = io::stat_fd(file->get());
  // A second name would let what we write show up elsewhere.
  const bool ours =
      meta && meta->type == io::FileType::kFile && meta->nlink == 1 && meta->uid == ::geteuid();
  return ours ? std::move(*file) : base::UniqueFd();
}

Result<base::UniqueFd> Targets::create_temp(int dirfd, const std::string& temp,
                                            const wire::EntryMeta& want) {
  const mode_t mode = first_mode(want, parts_.options.perms);
  auto file = io::open_at(dirfd, temp, O_RDWR | O_CREAT | O_EXCL, mode);
  if (!file && file.error().os_errno == EEXIST) {
    VF_ASSIGN(const io::Metadata stale, io::stat_at(dirfd, temp));
    VF_TRY(parts_.remover.remove(dirfd, temp, temp, stale, Remover::Report::kSilent));
    file = io::open_at(dirfd, temp, O_RDWR | O_CREAT | O_EXCL, mode);
  }
  return file;
}

Result<Target> Targets::create(const FileJob& job, base::UniqueFd interrupted, int basis) {
  Target target;
  VF_ASSIGN(const io::DirFd dir, parts_.tree.open(job.dir->node));
  if (in_place(job)) {
    // O_EXCL on a block device refuses one that is mounted or otherwise in use (open(2)).
    const int flags = O_RDWR | O_NONBLOCK | (job.device ? O_EXCL : 0);
    VF_ASSIGN(target.out, io::open_at(dir->get(), job.name, flags));
  } else {
    target.temp = temp_name(job.name);
    if (interrupted) {
      target.out = std::move(interrupted);
      target.resumed = true;
    } else {
      VF_ASSIGN(target.out, create_temp(dir->get(), target.temp, job.want));
      if (basis >= 0) {
        VF_ASSIGN(target.cloned, io::clone_file(basis, target.out.get()));
      }
    }
    if (::ftruncate(target.out.get(), static_cast<off_t>(job.want.size)) != 0) {
      Status failed = fail_sys("truncate " + job.name);
      discard(job, target, false);
      return std::unexpected(failed.error());
    }
  }
  const bool direct =
      parts_.always_direct || (parts_.direct_writes && job.want.size >= kDirectBytes);
  if (direct && io::direct_alignment(target.out.get()).value_or(1u << 30) <= 4096) {
    const std::string self = "/proc/self/fd/" + std::to_string(target.out.get());
    target.direct_out = base::UniqueFd(::open(self.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
  }
  return target;
}

Status Targets::dress(const FileJob& job, Target& target) {
  VF_ASSIGN(const io::Metadata meta, io::stat_fd(target.out.get()));
  Present present{meta, {}};
  // A fresh temporary has attributes only where the directory hands them down.
  if (target.in_place() || target.resumed || job.dir->default_acl) {
    VF_ASSIGN(present, parts_.installer.read(target.out.get(), "", meta));
  }
  VF_TRY(parts_.installer.apply(target.out.get(), -1, "", job.want, present));
  if (!parts_.installer.can_chown()) {
    VF_ASSIGN(const io::Metadata now, io::stat_fd(target.out.get()));
    parts_.installer.count_owner(job.want, now);
  }
  if (!parts_.options.perms && !target.in_place()) {
    const std::uint16_t mode = job.old ? job.old->meta.mode : parts_.installer.new_mode(job.want);
    VF_TRY(io::set_mode_at(target.out.get(), "", mode));
  }
  return {};
}

Status Targets::install(const FileJob& job, Target& target) {
  target.direct_out.reset();
  if (target.in_place() && !job.device) {
    if (::ftruncate(target.out.get(), static_cast<off_t>(job.want.size)) != 0)
      return fail_sys("truncate " + job.name);
  }
  if (!job.content_only) VF_TRY(dress(job, target));
  if (target.in_place()) return {};
  VF_ASSIGN(const io::DirFd dir, parts_.tree.open(job.dir->node));
  VF_TRY(place(dir->get(), target.temp, job.name, job.path(), parts_.remover,
               !parts_.options.filter.empty()));
  target.temp.clear();
  return {};
}

void Targets::write_direct(Worker& worker, const Target& target, std::uint64_t offset,
                           base::Buffer content, std::size_t length,
                           std::function<void(Status)> done) {
  parts_.pace.begin(DiskPace::Clock::now());
  worker.write_later(target.direct_out.get(), offset, std::move(content), 0, length,
                     [&pace = parts_.pace, length, done = std::move(done)](Status written) {
                       pace.end(length, DiskPace::Clock::now());
                       done(std::move(written));
                     });
}

void Targets::drop_interrupted(const FileJob& job) {
  if (!job.resume || in_place(job)) return;
  auto dir = parts_.tree.open(job.dir->node);
  if (!dir) return;
  const std::string temp = temp_name(job.name);
  auto meta = io::stat_at((*dir)->get(), temp);
  if (meta) (void)parts_.remover.remove((*dir)->get(), temp, temp, *meta, Remover::Report::kSilent);
}

void Targets::discard(const FileJob& job, Target& target, bool keep) {
  target.direct_out.reset();
  if (!target.in_place() && target.out && !keep) {
    if (auto dir = parts_.tree.open(job.dir->node))
      (void)::unlinkat((*dir)->get(), target.temp.c_str(), 0);
  }
  target.out.reset();
}

Result<bool> Targets::match_sparse(const FileJob& job, bool sparse) {
  VF_ASSIGN(const base::UniqueFd file, open_basis(job));
  if (!file || !io::tells_allocation(file.get())) return false;
  VF_ASSIGN(const io::Metadata meta, io::stat_fd(file.get()));
  if (meta.size > kPackFileBytes || is_sparse(meta) == sparse) return false;
  base::Buffer content = base::Buffer::heap(meta.size);
  VF_ASSIGN(const std::size_t got, io::read_full(file.get(), content.data(), meta.size, 0));
  if (got != job.want.size) return false;
  bool zeros = false;
  for (std::size_t at = 0; at + delta::kBlockBytes <= got && !zeros; at += delta::kBlockBytes)
    zeros = delta::is_zero({content.data() + at, delta::kBlockBytes});
  // A file system that compresses takes less space than there is data.
  if (!zeros) return false;
  VF_TRY(write_small(job, {content.data(), got}, sparse));
  return true;
}

Status Targets::write_small(const FileJob& job, base::Bytes content, bool sparse) {
  Target target;
  VF_ASSIGN(const io::DirFd dir, parts_.tree.open(job.dir->node));
  if (in_place(job)) {
    VF_ASSIGN(target.out, io::open_at(dir->get(), job.name, O_RDWR | O_NONBLOCK));
  } else {
    target.temp = temp_name(job.name);
    VF_ASSIGN(target.out, create_temp(dir->get(), target.temp, job.want));
  }
  const auto build = [&]() -> Status {
    if (!sparse) {
      if (!content.empty())
        VF_TRY(io::write_full(target.out.get(), content.data(), content.size(), 0));
      return install(job, target);
    }
    if (::ftruncate(target.out.get(), static_cast<off_t>(content.size())) != 0)
      return fail_sys("truncate " + job.name);
    for (std::size_t at = 0; at < content.size(); at += delta::kBlockBytes) {
      const base::Bytes block =
          content.subspan(at, std::min<std::size_t>(delta::kBlockBytes, content.size() - at));
      if (!delta::is_zero(block)) {
        VF_TRY(io::write_full(target.out.get(), block.data(), block.size(), at));
      } else if (target.in_place()) {
        VF_TRY(io::zero_range(target.out.get(), at, block.size(), io::ZeroMode::kHole));
      }
    }
    return install(job, target);
  };
  Status built = build();
  if (!built) discard(job, target, false);
  return built;
}

}  // namespace volferry::session
