// What this file is for: parsing the command line of troupe-convolve and its help text.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "examples/command_line.hpp"

namespace convolution {
namespace {

constexpr std::size_t tile_max = 65536;
constexpr std::size_t threads_max = 1024;
constexpr std::size_t nodes_max = 62;

std::size_t count_of(std::string_view option, std::string_view text, std::size_t max) {
  std::size_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || value < 1 || value > max)
    throw argument_error(std::string(option) + " takes a whole number from 1 to " + std::to_string(max) + ", not '" +
                         std::string(text) + "'");
  return value;
}

bool ends_with_ignoring_case(std::string_view text, std::string_view ending) {
  return text.size() > ending.size() &&
         std::equal(ending.begin(), ending.end(), text.end() - static_cast<std::ptrdiff_t>(ending.size()),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

std::vector<std::string> list_of(std::string_view option, std::string_view text) {
  try {
    return examples::device_names(option, text);
  } catch (const std::invalid_argument& e) {
    throw argument_error(e.what());
  }
}

}  // namespace

arguments parse_arguments(int argc, const char* const* argv) {
  arguments result;
  std::vector<std::string> files;
  bool options_end = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 >= argc) throw argument_error(std::string(word) + " needs a value; see --help");
      return argv[++i];
    };
    if (options_end || word.empty() || word[0] != '-') {
      files.emplace_back(word);
    } else if (word == "--") {
      options_end = true;
    } else if (word == "--kernel") {
      result.kernel = value();
    } else if (word == "--trace") {
      result.trace = value();
    } else if (word == "--tile") {
      result.tile = count_of(word, value(), tile_max);
    } else if (word == "--groups") {
      result.groups = count_of(word, value(), threads_max);
    } else if (word == "--threads") {
      result.threads = count_of(word, value(), threads_max);
    } else if (word == "--devices") {
      result.devices = list_of(word, value());
    } else if (word == "--nodes") {
      result.nodes = count_of(word, value(), nodes_max);
    } else if (word == "--work") {
      result.work = true;
    } else if (word == "--raw") {
      result.raw = true;
    } else if (word == "--verify") {
      result.verify = true;
    } else if (word == "--quiet") {
      result.quiet = true;
    } else if (word == "--help" || word == "-h") {
      result.help = true;
      return result;
    } else if (word == "--version") {
      result.version = true;
      return result;
    } else {
      throw argument_error("unknown option '" + std::string(word) + "'; see --help");
    }
  }
  if (result.work && files.empty()) return result;
  if (files.size() != 2)
    throw argument_error("two files are needed, IN and OUT.png, but " + std::to_string(files.size()) +
                         " were given; see --help");
  result.input = files[0];
  result.output = files[1];
  if (!ends_with_ignoring_case(result.output, ".png"))
    throw argument_error("the result is a PNG: OUT must end in .png, not '" + result.output + "'");
  if (result.raw && !result.kernel) throw argument_error("--raw goes with --kernel FILE, which is missing");
  if (result.trace && result.trace->empty()) throw argument_error("--trace needs the name of a file");
  if (result.groups && result.threads && *result.groups > *result.threads)
    throw argument_error("--groups " + std::to_string(*result.groups) + " needs as many threads, not --threads " +
                         std::to_string(*result.threads));
  return result;
}

std::string usage() {
  return R"(usage: troupe-convolve IN.(png|jpg|jpeg) OUT.png [options]

Filters a picture with a 31x31 Gaussian (sigma 5), or with a kernel of your own, as tiles on several core groups
and, where asked to, on accelerators.

  --kernel FILE   rows of whitespace-separated numbers, odd by odd, at most 63; divided by their sum
  --raw           use the numbers of FILE as they are (needed where their sum is zero)
  --tile N        side of a tile in pixels (64)
  --groups N      core groups to spread the tiles over (2, or 1 where there is only one thread)
  --threads N     worker threads in all (what this process may use)
  --devices LIST  accelerators to use as well, separated by commas: kinds (cuda, hip, opencl, sim) or single ones (sim:0)
  --nodes N       wait until N other nodes of the cluster are there, and share the tiles with them
  --work          no files: filter tiles for other nodes, until SIGTERM
  --verify        compare with a plain serial computation in double precision
  --trace FILE    write what ran when as Chrome/Perfetto JSON
  --quiet         print nothing but errors
  --help          this text
  --version       the library's version

The kernel is applied as written (correlation, as picture editors do): its upper left number weighs the pixel up and
to the left. Pixels beyond the border repeat the nearest pixel of the border. Sums are kept in float, rounded to the
nearest of 0..255 (halves up) and clamped. Grey pictures come out as RGB; alpha passes through unchanged.

The environment says which cluster: TROUPE_CLUSTER=NAME with TROUPE_SECRET_FILE=FILE, and TROUPE_LISTEN=HOST:PORT,
TROUPE_JOIN=HOST:PORT or TROUPE_MULTICAST=1. All its nodes run this program.

Exit code: 0 done; 1 the result failed --verify, or the work failed; 2 wrong input, and no file is written.
)";
}

}  // namespace convolution
