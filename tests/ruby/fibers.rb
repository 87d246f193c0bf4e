# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# A fiber scheduler that does what Ruby requires of one, and no more: IO.select in a
# loop.
class Loop
  def initialize
    @waking = {} # moments, by fiber
    @reading = {} # fibers, by IO
    @writing = {}
    @blocked = {} # fibers: nothing else refers to them
    @mutex = Mutex.new
    @unblocked = []
    @bell, @ring = IO.pipe
  end

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  # Of another thread, too.
  def unblock(_blocker, fiber)
    @mutex.synchronize { @unblocked << fiber }
    @ring.write_nonblock(".")
  end

  def block(_blocker, timeout = nil)
    @blocked[Fiber.current] = true
    pause(timeout)
  ensure
    @blocked.delete(Fiber.current)
  end

  def kernel_sleep(duration = nil)
    pause(duration)
    true
  end

  def io_wait(io, events, timeout = nil)
    me = Fiber.current
    @reading[io] = me if events.anybits?(IO::READABLE)
    @writing[io] = me if events.anybits?(IO::WRITABLE)
    pause(timeout) && events
  ensure
    @reading.delete(io)
    @writing.delete(io)
  end

  # At the end of the thread.
  def close
    turn until @waking.empty? && @reading.empty? && @writing.empty? && @blocked.empty?
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Returns false if the time is up.
  def pause(duration)
    @waking[Fiber.current] = now + duration if duration
    Fiber.yield
  ensure
    @waking.delete(Fiber.current)
  end

  def turn
    left = @waking.empty? ? nil : [0, @waking.values.min - now].max
    readable, writable = IO.select([@bell, *@reading.keys], @writing.keys, [], left)
    @bell.read_nonblock(1000) if readable&.delete(@bell)
    due = (readable || []).map { |io| @reading[io] } + (writable || []).map { |io| @writing[io] }
    due.concat(@mutex.synchronize { @unblocked.tap { @unblocked = [] } })
    due.each { |fiber| fiber.resume(true) }
    late = @waking.select { |_, at| at <= now }.keys
    late.each { |fiber| fiber.resume(false) }
  end
end
