# SPDX-License-Identifier: Apache-2.0
"""All metadata, over each transport; a second run finds nothing to do."""

import os

from support import attributes, trees
from support.case import ALL_TRANSPORTS, MAIN_TRANSPORTS, over


@over(*ALL_TRANSPORTS)
class WholeTree:
    def test_everything_arrives_and_the_second_run_is_a_noop(self):
        self.need_root("owners, devices and trusted xattrs")
        trees.metadata_tree(self.src)
        result = self.sync_and_check()
        self.assertEqual("ok", result.summary["result"])
        self.assertEqual(0, result.summary["exit_code"])
        self.assertEqual([], result.summary["errors"])
        self.assert_no_temporaries()

    def test_into_a_tree_that_has_everything_wrong(self):
        self.need_root("owners, devices and trusted xattrs")
        trees.metadata_tree(self.src)
        self.sync()
        for directory, _, names in os.walk(self.dst):
            for name in names:
                path = os.path.join(directory, name)
                if not os.path.islink(path):
                    for attribute in os.listxattr(path):
                        os.removexattr(path, attribute)
                    os.chmod(path, 0o777)
                os.chown(path, 77, 78, follow_symlinks=False)
                trees.set_mtime(path, 5)
            os.chown(directory, 77, 78)
            os.chmod(directory, 0o700)
            trees.set_mtime(directory, 6)
        self.sync_and_check()


@over(*MAIN_TRANSPORTS)
class SingleChanges:
    """Metadata changes alone: they arrive, and no content is sent."""

    def setUp(self):
        super().setUp()
        self.need_root("owners and trusted xattrs")
        trees.write_random(os.path.join(self.src, "d/file"), 200_000, seed=1)
        trees.write(os.path.join(self.src, "d/other"), b"other")
        os.symlink("target", os.path.join(self.src, "d/link"))
        self.sync()
        self.assert_same()
        self.file = os.path.join(self.src, "d/file")

    def check(self):
        result = self.sync("-i")
        self.assert_same()
        self.assertEqual(0, result.summary["literal_bytes"], f"\n{result}")
        self.assert_noop(self.sync("-i"))
        return result

    def test_mode(self):
        os.chmod(self.file, 0o4711)
        result = self.check()
        self.assertEqual([(".f...p.....", "d/file")], result.items)

    def test_owner_and_group(self):
        os.chown(self.file, 1234, 4321)
        result = self.check()
        self.assertEqual([(".f....og...", "d/file")], result.items)

    def test_owner_of_setuid_file_keeps_the_bit(self):
        os.chmod(self.file, 0o6755)
        self.check()
        os.chown(self.file, 1234, 4321)
        os.chmod(self.file, 0o6755)
        self.check()

    def test_owner_change_keeps_capability(self):
        attributes.set_capability(self.file, 13)
        self.check()
        capability = attributes.get_capability(self.file)
        os.chown(self.file, 12, 34)
        attributes.set_capability(self.file, 13)
        self.check()
        self.assertEqual(capability, attributes.get_capability(os.path.join(self.dst, "d/file")))

    def test_content_change_keeps_capability_and_setuid(self):
        attributes.set_capability(self.file, 13, 10)
        os.chmod(self.file, 0o4755)
        attributes.set_capability(self.file, 13, 10)
        self.check()
        trees.overwrite(self.file, 0, b"changed")
        os.chmod(self.file, 0o4755)
        attributes.set_capability(self.file, 13, 10)
        for options in ((), ("--inplace",)):
            with self.subTest(options):
                self.sync(*options)
                self.assert_same()
                trees.overwrite(self.file, 10, b"changed again")
                os.chmod(self.file, 0o4755)
                attributes.set_capability(self.file, 13, 10)
        self.sync()
        self.assert_same()

    def test_xattr_changed_added_removed(self):
        os.setxattr(self.file, "user.a", b"1")
        os.setxattr(self.file, "trusted.b", b"1")
        result = self.check()
        self.assertEqual([(".f........x", "d/file")], result.items)
        os.setxattr(self.file, "user.a", b"2")
        self.check()
        os.removexattr(self.file, "user.a")
        self.check()

    def test_xattr_on_directory_and_link(self):
        os.setxattr(os.path.join(self.src, "d"), "user.a", b"1")
        os.setxattr(os.path.join(self.src, "d/link"), "trusted.a", b"1", follow_symlinks=False)
        self.check()

    def test_acl_changed_and_removed(self):
        attributes.set_acl(self.file, "u::rw-,u:33:r--,g::r--,m::r--,o::---")
        result = self.check()
        self.assertEqual(1, len(result.items))
        self.assertEqual("a", result.items[0][0][9])
        attributes.set_acl(self.file, "u::rw-,u:33:rw-,g::r--,m::r--,o::---")
        self.check()
        os.removexattr(self.file, attributes.ACCESS)
        self.check()

    def test_default_acl_added_and_removed(self):
        directory = os.path.join(self.src, "d")
        attributes.set_acl(directory, "u::rwx,u:33:rwx,g::r-x,m::rwx,o::r-x", default=True)
        self.check()
        os.removexattr(directory, attributes.DEFAULT)
        self.check()

    def test_directory_mtime(self):
        trees.set_mtime(os.path.join(self.src, "d"), 10**18 + 7)
        result = self.check()
        self.assertEqual([(".d..t......", "d/")], result.items)

    def test_file_mtime_below_the_second(self):
        now = os.lstat(self.file).st_mtime_ns
        trees.set_mtime(self.file, now // 10**9 * 10**9 + (now + 1) % 10**9)
        self.check()

    def test_link_owner_and_time(self):
        link = os.path.join(self.src, "d/link")
        os.chown(link, 5, 6, follow_symlinks=False)
        trees.set_mtime(link, 42)
        self.check()


@over(*MAIN_TRANSPORTS)
class DefaultAclAtDestination:
    def test_new_entries_do_not_inherit(self):
        self.need_root("owners")
        trees.small_tree(self.src)
        os.makedirs(self.dst)
        attributes.set_acl(self.dst, "u::rwx,u:33:rwx,g::rwx,m::rwx,o::rwx", default=True)
        self.sync_and_check()

    def test_below_an_inheriting_directory_of_the_source(self):
        self.need_root("owners")
        os.makedirs(os.path.join(self.src, "d"))
        trees.write(os.path.join(self.src, "d/bare"), b"x", 0o600)
        os.mkdir(os.path.join(self.src, "d/sub"), 0o700)
        attributes.set_acl(
            os.path.join(self.src, "d"), "u::rwx,u:33:rwx,g::r-x,m::rwx,o::---", default=True
        )
        trees.write(os.path.join(self.src, "d/inherits"), b"x")
        self.sync_and_check()


@over(*MAIN_TRANSPORTS)
class LargeAttributes:
    def test_many_and_long_names(self):
        self.need_root("an xfs image")
        from support import blockdev

        mounted = blockdev.mount_image(self, "xfs", self.dir, "xfs", 300 << 20)
        self.src, self.dst = os.path.join(mounted, "src"), os.path.join(mounted, "dst")
        path = os.path.join(self.src, "f")
        trees.write(path, b"x")
        for number in range(200):
            os.setxattr(path, "user." + f"{number:04d}".ljust(240, "n"), b"v" * 100)
        os.setxattr(path, "user.large", b"L" * 60_000)
        self.sync_and_check()
