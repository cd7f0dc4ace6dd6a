// The book as a backend of torch.distributed: what PyTorch asks of a process group, in the calls of
// a GuestRank.
//
//     dist.all_reduce(tensor)                   c10d's name       here
//        │ a Work, at once                      allreduce         kernels, or a gathering
//        ▼                                      allgather         bytes
//     work.wait()   of dist's functions         broadcast         bytes
//     future        of DDP                      reduce_scatter    kernels
//
// Gathers on all ranks what kernels do not sum (integers of 8 bytes, products, ...), and each rank
// reduces all of it in the order of the ranks: correct, and for little data.
#include <ATen/ATen.h>
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "23_your_job/backend/guest_rank.hpp"

namespace {

using c10d::OpType;
using Tensors = std::vector<at::Tensor>;
using Work = c10::intrusive_ptr<c10d::Work>;

// ---- A call under way

class BookWork final : public c10d::Work {
  public:
    // `held` must stay until the call is done; `outputs` are the result. `after`, if there is one,
    // is called by the rank's thread when the data is there.
    BookWork(int rank, OpType operation, const char* title, const Tensors& inputs, Tensors outputs,
             Tensors held, std::function<void()> after)
        : Work(rank, operation, title, inputs),
          outputs_(std::move(outputs)),
          held_(std::move(held)),
          after_(std::move(after)),
          future_(c10::make_intrusive<at::ivalue::Future>(
              c10::ListType::create(c10::TensorType::get()))) {}

    void end(std::exception_ptr error) {
        try {
            if (!error && after_)
                after_();
        } catch (...) {
            error = std::current_exception();
        }
        held_.clear();
        finish(error);
        if (error)
            future_->setError(error);
        else
            future_->markCompleted(c10::IValue(outputs_));
    }

    std::vector<at::Tensor> result() override { return outputs_; }
    // Python may add a callback that makes calls of its own and waits for them, as PowerSGD's hook
    // does. Python's future is over when it is handed out, so that such a callback runs on its
    // thread and in the program's order, which all ranks share; the rank's thread would wait for
    // itself. DistributedDataParallel asks from C++, and goes on with backward.
    c10::intrusive_ptr<at::ivalue::Future> getFuture() override {
        if (PyGILState_Check()) {
            const py::gil_scoped_release released;
            future_->wait();
        }
        return future_;
    }

  private:
    Tensors outputs_, held_;
    std::function<void()> after_;
    c10::intrusive_ptr<at::ivalue::Future> future_;
};

// ---- PyTorch's words and the book's

// Returns the book's name of a type that kernels sum; "" if they do not.
std::string name_of(at::ScalarType type) {
    switch (type) {
        case at::ScalarType::Float:
            return "float";
        case at::ScalarType::Double:
            return "double";
        case at::ScalarType::Half:
            return "half";
        case at::ScalarType::BFloat16:
            return "bfloat16";
        case at::ScalarType::Int:
            return "int";
        default:
            return "";
    }
}

std::string name_of(const c10d::ReduceOp& op) {
    switch (op.op_) {
        case c10d::ReduceOp::SUM:
            return "sum";
        case c10d::ReduceOp::AVG:
            return "average";
        case c10d::ReduceOp::MAX:
            return "maximum";
        case c10d::ReduceOp::MIN:
            return "minimum";
        default:
            return "";
    }
}

// Reduces what all ranks have sent, in the order of the ranks.
at::Tensor reduced(const Tensors& all, const c10d::ReduceOp& op) {
    at::Tensor result = all[0].clone();
    for (std::size_t r = 1; r < all.size(); r++)
        switch (op.op_) {
            case c10d::ReduceOp::SUM:
                result.add_(all[r]);
                break;
            case c10d::ReduceOp::PRODUCT:
                result.mul_(all[r]);
                break;
            case c10d::ReduceOp::MAX:
                result = at::maximum(result, all[r]);
                break;
            case c10d::ReduceOp::MIN:
                result = at::minimum(result, all[r]);
                break;
            case c10d::ReduceOp::BAND:
                result.bitwise_and_(all[r]);
                break;
            case c10d::ReduceOp::BOR:
                result.bitwise_or_(all[r]);
                break;
            case c10d::ReduceOp::BXOR:
                result.bitwise_xor_(all[r]);
                break;
            default:
                TORCH_CHECK(false, "ddp_by_hand has no such reduction of ", all[0].scalar_type());
        }
    return result;
}

// Returns the one tensor of a call.
const at::Tensor& only(const Tensors& tensors) {
    TORCH_CHECK(tensors.size() == 1, "ddp_by_hand takes one tensor a call");
    TORCH_CHECK(tensors[0].layout() == at::Layout::Strided && tensors[0].device().is_cpu(),
                "ddp_by_hand takes dense tensors on the CPU: use gloo or nccl for others");
    return tensors[0];
}

// ---- The backend

class BookBackend final : public c10d::Backend {
  public:
    BookBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                std::chrono::milliseconds timeout)
        : Backend(rank, size),
          options_(c10::make_intrusive<Options>("ddp_by_hand", timeout)),
          book_(rank, size, static_cast<double>(timeout.count()) * 1e-3,
                [&](const std::string& text) {
                    const std::string key = "ddp_by_hand: rank ";
                    store->set(key + std::to_string(rank),
                               std::vector<std::uint8_t>(text.begin(), text.end()));
                    std::vector<std::string> all;
                    for (int r = 0; r < size; r++) {
                        const auto bytes = store->get(key + std::to_string(r));
                        all.emplace_back(bytes.begin(), bytes.end());
                    }
                    return all;
                }) {}

    const std::string getBackendName() const override { return "ddp_by_hand"; }
    c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
    void shutdown() override { book_.leave(); }
    void fail(const std::string& why) { book_.fail(why); }

    Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
        const std::string type = name_of(only(tensors).scalar_type());
        const std::string op = name_of(options.reduceOp);
        if (type.empty() || op.empty())
            return reduce_what_is_gathered(tensors, options.reduceOp);
        const at::Tensor data = dense(tensors[0]);
        const auto count = static_cast<std::size_t>(data.numel());
        return start(OpType::ALLREDUCE, "ddp_by_hand:all_reduce", tensors, tensors, {data},
                     copying_back(tensors[0], data),
                     [&](auto done) { book_.all_reduce(data.data_ptr(), count, type, op, done); });
    }

    // All ranks reduce, and only the root keeps what comes of it.
    Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
        Tensors data{rank_ == options.rootRank ? only(tensors) : only(tensors).clone()};
        c10d::AllreduceOptions of_all;
        of_all.reduceOp = options.reduceOp;
        return allreduce(data, of_all);
    }

    Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
        const at::Tensor data = dense(only(tensors));
        return start(OpType::BROADCAST, "ddp_by_hand:broadcast", tensors, tensors, {data},
                     copying_back(tensors[0], data), [&](auto done) {
                         book_.broadcast(data.data_ptr(), data.nbytes(),
                                         static_cast<int>(options.rootRank), done);
                     });
    }

    Work allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                   const c10d::AllgatherOptions&) override {
        const at::Tensor input = only(inputs).contiguous();
        TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == static_cast<std::size_t>(size_),
                    "all_gather takes one tensor for each of the ", size_, " ranks");
        Tensors parts, held{input};
        for (const at::Tensor& output : outputs[0]) {
            TORCH_CHECK(
                output.scalar_type() == input.scalar_type() && output.numel() == input.numel(),
                "all_gather: an output differs from the input in its size or its type");
            parts.push_back(output.is_contiguous()
                                ? output
                                : at::empty_like(output, at::MemoryFormat::Contiguous));
            held.push_back(parts.back());
        }
        const auto copy_back = [to = outputs[0], parts] {
            for (std::size_t r = 0; r < parts.size(); r++)
                if (!to[r].is_same(parts[r]))
                    to[r].copy_(parts[r]);
        };
        return gather(OpType::ALLGATHER, input, outputs[0], parts, held, copy_back);
    }

    Work gather(std::vector<Tensors>& outputs, Tensors& inputs,
                const c10d::GatherOptions& options) override {
        std::vector<Tensors> all = outputs;
        if (rank_ != options.rootRank)  // there they are nobody's
            all = {parts_of(at::empty({size_, only(inputs).numel()}, inputs[0].options()))};
        return allgather(all, inputs, {});
    }

    Work _allgather_base(at::Tensor& output, at::Tensor& input,
                         const c10d::AllgatherOptions&) override {
        const at::Tensor data = only({input}).contiguous();
        TORCH_CHECK(output.is_contiguous() && output.scalar_type() == input.scalar_type() &&
                        output.numel() == input.numel() * size_,
                    "all_gather_into_tensor: the output must be contiguous, and have ", size_,
                    " times the elements of the input");
        const Tensors parts = parts_of(output);
        return gather(OpType::_ALLGATHER_BASE, data, {output}, parts, {data, output}, nullptr);
    }

    Work reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                        const c10d::ReduceScatterOptions& options) override {
        TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(size_),
                    "reduce_scatter takes one tensor for each of the ", size_, " ranks");
        Tensors parts;
        for (const at::Tensor& input : inputs[0]) {
            TORCH_CHECK(input.scalar_type() == only(outputs).scalar_type() &&
                            input.numel() == outputs[0].numel(),
                        "reduce_scatter: an input differs from the output in its size or its type");
            parts.push_back(input.contiguous());
        }
        return scatter_sums(OpType::REDUCE_SCATTER, outputs[0], parts, options.reduceOp);
    }

    Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                              const c10d::ReduceScatterOptions& options) override {
        TORCH_CHECK(input.scalar_type() == only({output}).scalar_type() &&
                        input.numel() == output.numel() * size_,
                    "reduce_scatter_tensor: the input must have ", size_,
                    " times the elements of the output");
        return scatter_sums(OpType::_REDUCE_SCATTER_BASE, output, parts_of(input.contiguous()),
                            options.reduceOp);
    }

    Work barrier(const c10d::BarrierOptions&) override {
        return start(OpType::BARRIER, "ddp_by_hand:barrier", {}, {}, {}, nullptr,
                     [&](auto done) { book_.barrier(done); });
    }

  private:
    // Makes the Work of a call, and makes the call: begin(done).
    template <class Begin>
    Work start(OpType operation, const char* title, const Tensors& inputs, Tensors outputs,
               Tensors held, std::function<void()> after, const Begin& begin) {
        const auto work = c10::make_intrusive<BookWork>(
            rank_, operation, title, inputs, std::move(outputs), std::move(held), std::move(after));
        begin([work](std::exception_ptr error) { work->end(error); });
        return work;
    }

    Work gather(OpType operation, const at::Tensor& input, Tensors outputs, const Tensors& parts,
                Tensors held, std::function<void()> after) {
        std::vector<void*> places;
        for (const at::Tensor& part : parts)
            places.push_back(part.data_ptr());
        return start(operation, "ddp_by_hand:all_gather", {input}, std::move(outputs),
                     std::move(held), std::move(after), [&](auto done) {
                         book_.all_gather(input.data_ptr(), places, input.nbytes(), done);
                     });
    }

    Work reduce_what_is_gathered(const Tensors& tensors, const c10d::ReduceOp& op) {
        const at::Tensor input = tensors[0].contiguous();
        const at::Tensor all = at::empty({size_, input.numel()}, input.options());
        const Tensors parts = parts_of(all);
        return gather(OpType::ALLREDUCE, input, tensors, parts, {input, all},
                      [to = tensors[0], parts, op] {
                          at::Tensor target = to;
                          target.copy_(reduced(parts, op).view(to.sizes()));
                      });
    }

    Work scatter_sums(OpType operation, const at::Tensor& output, const Tensors& parts,
                      const c10d::ReduceOp& reduction) {
        const std::string type = name_of(output.scalar_type()), op = name_of(reduction);
        TORCH_CHECK(!type.empty() && !op.empty(), "ddp_by_hand has no such reduce_scatter of ",
                    output.scalar_type());
        const at::Tensor sums = output.is_contiguous() ? output : output.contiguous();
        std::vector<const void*> places;
        for (const at::Tensor& part : parts)
            places.push_back(part.const_data_ptr());
        Tensors held = parts;
        held.push_back(sums);
        return start(operation, "ddp_by_hand:reduce_scatter", parts, {output}, held,
                     copying_back(output, sums), [&](auto done) {
                         book_.reduce_scatter(places, sums.data_ptr(),
                                              static_cast<std::size_t>(sums.numel()), type, op,
                                              done);
                     });
    }

    // Returns each rank's part of a contiguous tensor, where it lies.
    Tensors parts_of(const at::Tensor& all) const { return all.view({size_, -1}).unbind(0); }
    // Returns the tensor, or a copy of it that has no gaps.
    static at::Tensor dense(const at::Tensor& tensor) {
        return tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
    }
    static std::function<void()> copying_back(at::Tensor to, at::Tensor from) {
        if (to.is_same(from))
            return nullptr;
        return [to, from]() mutable { to.copy_(from); };
    }

    const c10::intrusive_ptr<Options> options_;
    ddp::GuestRank book_;
};

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                         int size, std::chrono::duration<float> timeout) {
    return c10::make_intrusive<BookBackend>(
        store, rank, size, std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
}

}  // namespace

PYBIND11_MODULE(_ddp_by_hand, module) {
    module.def("create", &create, py::call_guard<py::gil_scoped_release>());
    module.def("sums_by_the_readers", &ddp::GuestRank::sums_by_the_readers);
    module.def(
        "fail",
        [](const c10::intrusive_ptr<c10d::Backend>& backend, const std::string& why) {
            dynamic_cast<BookBackend&>(*backend).fail(why);
        },
        py::call_guard<py::gil_scoped_release>());
}
