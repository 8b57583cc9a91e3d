// What this file is for: telling formats apart, the memory check, and the way through libpng and libjpeg.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The two libraries report errors by a callback that must not return. Throwing through their C frames is not defined,
// so the callbacks jump; each function that sets the target of a jump holds no object with a destructor.
#include "image.hpp"

#include <cerrno>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <new>

#include <sys/stat.h>

#include <jpeglib.h>
#include <png.h>

namespace convolution {
namespace {

struct close_file {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using file_handle = std::unique_ptr<std::FILE, close_file>;

// The picture itself, the result, one copy of each on the way (windows of tiles, rows to be compressed).
constexpr double bytes_per_sample = 4;
// A progressive JPEG keeps its coefficients, three of two bytes a pixel, until the last scan.
constexpr double jpeg_bytes_per_pixel = 6;

std::string size_text(double bytes) {
  char text[32];
  if (bytes < 1024.0 * 1024 * 1024)
    std::snprintf(text, sizeof text, "%.0f MiB", bytes / 1024 / 1024);
  else
    std::snprintf(text, sizeof text, "%.1f GiB", bytes / 1024 / 1024 / 1024);
  return text;
}

// In double: the product of two sizes from a hostile header does not fit any integer.
void check_memory(const image& picture, double bytes_per_pixel_more, std::uint64_t bytes_max, const std::string& path) {
  const double pixels = static_cast<double>(picture.width) * static_cast<double>(picture.height);
  const double needed = pixels * (static_cast<double>(picture.channels) * bytes_per_sample + bytes_per_pixel_more);
  if (needed > static_cast<double>(bytes_max))
    throw image_error(image_fault::too_large, path + ": " + std::to_string(picture.width) + "x" +
                                                  std::to_string(picture.height) + " pixels need about " +
                                                  size_text(needed) + " of memory, and " +
                                                  size_text(static_cast<double>(bytes_max)) + " are available");
}

// ---- PNG

struct png_fault {
  std::jmp_buf target;
  char text[128] = "";
};

void png_failed(png_structp png, png_const_charp text) {
  auto& fault = *static_cast<png_fault*>(png_get_error_ptr(png));
  std::snprintf(fault.text, sizeof fault.text, "%s", text);
  std::longjmp(fault.target, 1);
}

void png_warned(png_structp, png_const_charp) {}  // odd metadata; pixels are not affected

struct png_reader {
  png_fault fault;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &fault, png_failed, png_warned);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  png_reader() {
    if (!info) throw std::bad_alloc();
  }
  ~png_reader() { png_destroy_read_struct(&png, &info, nullptr); }
  png_reader(const png_reader&) = delete;
  png_reader& operator=(const png_reader&) = delete;
};

// Only what the header says; libpng takes memory for rows later, in read_png_rows.
// `packed_row_bytes`: a row as it is in the file, before compression.
bool read_png_header(png_reader& reader, std::FILE* file, image& picture, std::size_t& packed_row_bytes) {
  if (setjmp(reader.fault.target)) return false;
  png_structp png = reader.png;
  png_init_io(png, file);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the limit is memory, checked by read_png
  png_read_info(png, reader.info);
  const bool transparent =
      (png_get_color_type(png, reader.info) & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, reader.info, PNG_INFO_tRNS);
  picture.width = png_get_image_width(png, reader.info);
  picture.height = png_get_image_height(png, reader.info);
  picture.channels = transparent ? 4 : 3;
  packed_row_bytes = png_get_rowbytes(png, reader.info);
  return true;
}

bool read_png_rows(png_reader& reader, png_bytepp rows, std::size_t row_bytes) {
  if (setjmp(reader.fault.target)) return false;
  png_structp png = reader.png;
  png_set_expand(png);  // palettes, fewer than 8 bits, transparent colours
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  if (png_get_rowbytes(png, reader.info) != row_bytes) png_error(png, "rows of an unexpected size");
  png_read_image(png, rows);
  png_read_end(png, nullptr);  // a file that ends before its end mark is damaged too
  return true;
}

image read_png(std::FILE* file, std::uint64_t file_bytes, const std::string& path, std::uint64_t memory_bytes_max) {
  const auto damaged = [&](const char* why) {
    return image_error(image_fault::damaged, path + ": damaged, truncated or unsupported PNG (" + why + ")");
  };
  png_reader reader;
  image picture;
  std::size_t packed_row_bytes = 0;
  if (!read_png_header(reader, file, picture, packed_row_bytes)) throw damaged(reader.fault.text);
  check_memory(picture, 0, memory_bytes_max, path);
  // Deflate packs at most 1032 to 1, so a small file with a huge header is known to be a lie before it is unpacked.
  const double packed_bytes = static_cast<double>(packed_row_bytes) * static_cast<double>(picture.height);
  if (packed_bytes > 1032 * static_cast<double>(file_bytes)) throw damaged("too short for the size it claims");
  picture.samples.resize(picture.row_bytes() * picture.height);
  std::vector<png_bytep> rows(picture.height);
  for (std::size_t y = 0; y < picture.height; ++y) rows[y] = picture.samples.data() + y * picture.row_bytes();
  if (!read_png_rows(reader, rows.data(), picture.row_bytes())) throw damaged(reader.fault.text);
  return picture;
}

struct png_writer {
  png_fault fault;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &fault, png_failed, png_warned);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  png_writer() {
    if (!info) throw std::bad_alloc();
  }
  ~png_writer() { png_destroy_write_struct(&png, &info); }
  png_writer(const png_writer&) = delete;
  png_writer& operator=(const png_writer&) = delete;
};

bool write_png_rows(png_writer& writer, std::FILE* stream, const image& picture) {
  if (setjmp(writer.fault.target)) return false;
  png_structp png = writer.png;
  png_init_io(png, stream);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // what could be read can be written
  png_set_IHDR(png, writer.info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height), 8,
               picture.channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, writer.info);
  for (std::size_t y = 0; y < picture.height; ++y) png_write_row(png, picture.samples.data() + y * picture.row_bytes());
  png_write_end(png, writer.info);
  return true;
}

// ---- JPEG

struct jpeg_fault {
  jpeg_error_mgr calls;  // first, so that the library's pointer to it is a pointer to this
  std::jmp_buf target;
  char text[JMSG_LENGTH_MAX] = "";
};

void jpeg_failed(j_common_ptr jpeg) {
  auto& fault = *reinterpret_cast<jpeg_fault*>(jpeg->err);
  fault.calls.format_message(jpeg, fault.text);
  std::longjmp(fault.target, 1);
}

// The library pads a truncated file with grey and only warns. A filter must not pretend to have seen the picture.
void jpeg_noted(j_common_ptr jpeg, int level) {
  if (level < 0) jpeg_failed(jpeg);
}

struct jpeg_reader {
  jpeg_fault fault;
  jpeg_decompress_struct jpeg = {};
  bool open = false;
  ~jpeg_reader() {
    if (open) jpeg_destroy_decompress(&jpeg);
  }
};

bool read_jpeg_header(jpeg_reader& reader, std::FILE* file, image& picture) {
  reader.jpeg.err = jpeg_std_error(&reader.fault.calls);
  reader.fault.calls.error_exit = jpeg_failed;
  reader.fault.calls.emit_message = jpeg_noted;
  if (setjmp(reader.fault.target)) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.open = true;
  jpeg_stdio_src(&reader.jpeg, file);
  jpeg_read_header(&reader.jpeg, TRUE);
  reader.jpeg.out_color_space = JCS_RGB;
  picture.width = reader.jpeg.image_width;
  picture.height = reader.jpeg.image_height;
  picture.channels = 3;
  return true;
}

bool read_jpeg_rows(jpeg_reader& reader, image& picture) {
  if (setjmp(reader.fault.target)) return false;
  jpeg_start_decompress(&reader.jpeg);
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    JSAMPROW row = picture.samples.data() + reader.jpeg.output_scanline * picture.row_bytes();
    jpeg_read_scanlines(&reader.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

image read_jpeg(std::FILE* file, std::uint64_t file_bytes, const std::string& path, std::uint64_t memory_bytes_max) {
  const auto damaged = [&](const char* why) {
    return image_error(image_fault::damaged, path + ": damaged, truncated or unsupported JPEG (" + why + ")");
  };
  jpeg_reader reader;
  image picture;
  if (!read_jpeg_header(reader, file, picture)) throw damaged(reader.fault.text);
  check_memory(picture, jpeg_bytes_per_pixel, memory_bytes_max, path);
  // Huffman codes spend at least one bit on a block of 8 x 8 pixels; see read_png for the use of that.
  const double pixels = static_cast<double>(picture.width) * static_cast<double>(picture.height);
  if (!reader.jpeg.arith_code && pixels > 8.0 * 64.0 * static_cast<double>(file_bytes))
    throw damaged("too short for the size it claims");
  picture.samples.resize(picture.row_bytes() * picture.height);
  if (!read_jpeg_rows(reader, picture)) throw damaged(reader.fault.text);
  return picture;
}

}  // namespace

image read_image(const std::string& path, std::uint64_t memory_bytes_max) {
  const auto unreadable = [&](int code) {
    return image_error(image_fault::unreadable, "cannot read " + path + ": " + std::strerror(code));
  };
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) throw unreadable(errno);  // before opening, which would wait on a pipe
  if (!S_ISREG(status.st_mode))
    throw image_error(image_fault::unreadable, "cannot read " + path + ": not a regular file");
  const file_handle file(std::fopen(path.c_str(), "rb"));
  if (!file) throw unreadable(errno);

  unsigned char head[8] = {};
  const std::size_t got = std::fread(head, 1, sizeof head, file.get());
  if (std::ferror(file.get())) throw unreadable(errno);
  std::rewind(file.get());
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (got == sizeof head && png_sig_cmp(head, 0, sizeof head) == 0)
    return read_png(file.get(), file_bytes, path, memory_bytes_max);
  if (got >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff)
    return read_jpeg(file.get(), file_bytes, path, memory_bytes_max);
  throw image_error(image_fault::unknown_format, path + ": neither a PNG nor a JPEG");
}

void write_png(std::FILE* stream, const image& picture, const std::string& name) {
  png_writer writer;
  errno = 0;
  if (!write_png_rows(writer, stream, picture))
    throw image_error(image_fault::unwritable,
                      "cannot write " + name + ": " + (errno != 0 ? std::strerror(errno) : writer.fault.text));
}

}  // namespace convolution
