// What this file is for: everything a program needs but streams (stream.hpp), in one include.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/access.hpp>
#include <troupe/access_list.hpp>
#include <troupe/array.hpp>
#include <troupe/array_maker.hpp>
#include <troupe/box.hpp>
#include <troupe/cluster.hpp>
#include <troupe/cluster_report.hpp>
#include <troupe/credentials.hpp>
#include <troupe/device_call.hpp>
#include <troupe/devices.hpp>
#include <troupe/error.hpp>
#include <troupe/future.hpp>
#include <troupe/graph.hpp>
#include <troupe/kernel.hpp>
#include <troupe/offer.hpp>
#include <troupe/options.hpp>
#include <troupe/pinned_memory.hpp>
#include <troupe/report.hpp>
#include <troupe/runtime.hpp>
#include <troupe/scope.hpp>
#include <troupe/shape.hpp>
#include <troupe/submitter.hpp>
#include <troupe/task_context.hpp>
#include <troupe/this_task.hpp>
#include <troupe/version.hpp>
#include <troupe/view.hpp>
