//! deletetree TREE: removes a tree with Zig's standard library, as a rival. Without a tree it says its version.
//! `std.fs.Dir.deleteTree` of Zig up to 0.15 is `std.Io.Dir.deleteTree` since 0.16.
const std = @import("std");

pub fn main(init: std.process.Init) u8 {
    var arguments = init.minimal.args.iterate();
    _ = arguments.skip();
    const tree = arguments.next() orelse {
        std.debug.print("deletetree of Zig {s}; usage: deletetree TREE\n", .{@import("builtin").zig_version_string});
        return 2;
    };
    std.Io.Dir.cwd().deleteTree(init.io, tree) catch |why| {
        std.debug.print("deletetree: {s}: {t}\n", .{ tree, why });
        return 1;
    };
    return 0;
}
